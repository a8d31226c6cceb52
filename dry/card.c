/* SPDX-License-Identifier: MIT */
#include "dry/card.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *name;
	size_t at;
} fields[] = {
#define FIELD(name, scale, attribute) {#name, offsetof(struct sl_dry_card, name)},
#include "dry/fields.def"
#undef FIELD
};

/* False: no field has this name, or the value is no number, which may have a unit: 12G, 12GiB. */
static bool read_number(struct sl_dry_card *card, const char *name, size_t length, const char *value)
{
	static const char units[] = "KMGT";
	char *end;
	int64_t number = strtoll(value, &end, 10);
	const char *unit = end > value && *end ? strchr(units, *end) : NULL;

	if (unit && number < 1 << 20) {
		number <<= 10 * (unit - units + 1);
		end += !strncmp(end + 1, "iB", 2) ? 3 : 1;
	}
	end += strspn(end, " \t\r");
	if (*end && *end != '\n')
		return false;

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (strlen(fields[i].name) == length && !memcmp(fields[i].name, name, length) && end > value && number >= 0) {
			memcpy((char *)card + fields[i].at, &number, sizeof(number));
			return true;
		}
	return false;
}

const char *sl_dry_card_read(struct sl_dry_card *card, const char *lines)
{
	for (const char *at = lines; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		size_t name = strcspn(at, " =\n");
		const char *value = at + name;

		value += strspn(value, " ");
		if (*at == '\n' || *at == '#')
			continue;
		if (*value++ != '=')
			return at;
		value += strspn(value, " ");
		if (name == strlen("name") && !memcmp(at, "name", name)) {
			size_t length = strcspn(value, "\n");

			length = length < sizeof(card->name) ? length : sizeof(card->name) - 1;
			memcpy(card->name, value, length);
			card->name[length] = 0;
		} else if (!read_number(card, at, name, value)) {
			return at;
		}
	}
	return NULL;
}

bool sl_dry_card_here(void)
{
	const char *folder = getenv(SL_DRY_FOLDER);
	struct stat status;

	if (!folder || !getenv(SL_DRY_CARD) || lstat(folder, &status) || !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
		return false;
	return getenv(SL_DRY_FORCE) || access("/dev/nvidiactl", F_OK);
}
