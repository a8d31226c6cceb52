/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"

#include <stdlib.h>

#include "common/text.h"

#define PREFIX "STORMLOG_"

const struct sl_options_row sl_options_table[] = {
#define OPTION(name, type, flag, letter, variable, def, unit, choices, help)                                                       \
	{#name, flag, variable, def, unit, choices, help, SL_OPTION_##type, letter, offsetof(struct sl_options, name)},
#include "agent/process/options.def"
#undef OPTION
};
const unsigned sl_options_count = SL_COUNT(sl_options_table);

static bool parse_number(const char *text, uint64_t *number)
{
	uint64_t value = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || value > (UINT64_MAX - 9) / 10)
			return false;
		value = value * 10 + (uint64_t)(*text - '0');
	}
	*number = value;
	return true;
}

/* Index of `text` among words separated by |; -1: it is not among them. */
static int parse_choice(const char *words, const char *text)
{
	size_t size = strlen(text);

	for (int index = 0; *words; index++) {
		size_t length = strcspn(words, "|");

		if (length == size && !memcmp(words, text, size))
			return index;
		words += length + (words[length] == '|');
	}
	return -1;
}

static bool parse_flag(const char *text, bool *flag)
{
	/* The words for on and off alternate. */
	int index = parse_choice("0|1|no|yes|off|on|false|true", text);

	if (index < 0)
		return false;
	*flag = index & 1;
	return true;
}

bool sl_options_set(const struct sl_options_row *option, struct sl_options *options, const char *text)
{
	void *member = (char *)options + option->offset;
	int index;

	switch (option->type) {
	case SL_OPTION_text:
		*(const char **)member = *text ? text : NULL;
		return true;
	case SL_OPTION_size:
		return sl_size_parse(text, member);
	case SL_OPTION_number:
		return parse_number(text, member);
	case SL_OPTION_flag:
		return parse_flag(text, member);
	case SL_OPTION_choice:
		index = parse_choice(option->choices, text);
		if (index >= 0)
			*(unsigned *)member = (unsigned)index;
		return index >= 0;
	}
	return false;
}

static const char *number_text(uint64_t number, char scratch[24])
{
	char *at = scratch + 23;

	*at = 0;
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	return at;
}

/* The index-th of words separated by |. */
static const char *choice_text(const char *words, unsigned index, char scratch[24])
{
	size_t length;

	while (index-- && *words)
		words += strcspn(words, "|") + 1;
	length = strcspn(words, "|");
	if (length > 23)
		length = 23;
	memcpy(scratch, words, length);
	scratch[length] = 0;
	return scratch;
}

const char *sl_options_text(const struct sl_options_row *option, const struct sl_options *options, char scratch[24])
{
	const void *member = (const char *)options + option->offset;

	switch (option->type) {
	case SL_OPTION_text:
		return *(const char *const *)member;
	case SL_OPTION_size:
	case SL_OPTION_number:
		return number_text(*(const uint64_t *)member, scratch);
	case SL_OPTION_flag:
		return *(const bool *)member ? "1" : "0";
	case SL_OPTION_choice:
		return choice_text(option->choices, *(const unsigned *)member, scratch);
	}
	return NULL;
}

static char own_variables[8192]; /* "NAME=value", one behind the other; "" ends them */

/* __environ: a program may have a variable of its own that is called environ. */
SL_STARTUP_TEXT void sl_options_keep(void)
{
	size_t used = 0;

	for (char **at = __environ; at && *at; at++) {
		size_t size = strncmp(*at, PREFIX, sizeof(PREFIX) - 1) ? 0 : strlen(*at) + 1;

		if (!size || used + size >= sizeof(own_variables))
			continue;
		memcpy(own_variables + used, *at, size);
		used += size;
	}
}

/* "NAME=value": the value, if that is the name; else NULL. */
static SL_STARTUP_TEXT const char *value_of(const char *text, const char *name, size_t size)
{
	return !strncmp(text, name, size) && text[size] == '=' ? text + size + 1 : NULL;
}

SL_STARTUP_TEXT const char *sl_options_variable(const char *name)
{
	size_t size = strlen(name);
	const char *value = NULL;

	for (char **at = __environ; at && *at && !value; at++)
		value = value_of(*at, name, size);
	for (const char *at = own_variables; !value && *at; at += strlen(at) + 1)
		value = value_of(at, name, size);
	return value;
}

void sl_options_read(struct sl_options *options, void (*bad)(const char *variable, const char *value))
{
	for (unsigned i = 0; i < sl_options_count; i++) {
		const struct sl_options_row *option = &sl_options_table[i];
		const char *text = sl_options_variable(option->variable);

		sl_options_set(option, options, option->def);
		/* An empty variable counts as unset, which is the usual way to return to a default. */
		if (text && *text && !sl_options_set(option, options, text) && bad)
			bad(option->variable, text);
	}
}
