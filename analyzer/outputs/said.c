/* SPDX-License-Identifier: MIT */
/* Writes what the user told about a run: by --meta at its start, by stormlog.h while it ran. */

#include "analyzer/outputs/output.h"

void sl_output_metadata(struct sl_json *j, const struct sl_model *model)
{
	const struct sl_header *header = model->header;
	const struct sl_defs *defs = model->defs;

	for (unsigned i = 0; i < header->metadata_count; i++)
		if (!sl_defs_metadata(defs, header->metadata[i].name))
			sl_json_string(j, header->metadata[i].name, header->metadata[i].value);
	for (size_t i = 0; i < defs->metadata.count; i++)
		sl_json_string(j, defs->metadata.item[i].key, defs->metadata.item[i].value);
}

#define KEY_MAX 256

/* Splits KEY=VALUE: returns the value and copies the key. */
static const char *split(const char *text, char key[KEY_MAX])
{
	size_t length = strcspn(text, "=");

	if (length >= KEY_MAX)
		length = KEY_MAX - 1;
	memcpy(key, text, length);
	key[length] = 0;
	return text[length] ? text + length + 1 : "";
}

static bool has_key(const struct sl_model *model, const uint32_t *pairs, unsigned count, const char *key)
{
	char other[KEY_MAX];

	for (unsigned i = 0; i < count; i++) {
		const char *text = sl_defs_text(model->defs, pairs[i]);

		if (!text)
			continue;
		split(text, other);
		if (!strcmp(other, key))
			return true;
	}
	return false;
}

void sl_output_pairs(struct sl_json *j, const char *key, const struct sl_model *model, const uint32_t *pairs, unsigned count)
{
	char name[KEY_MAX];

	sl_json_object(j, key);
	for (unsigned i = 0; i < count; i++) {
		const char *text = sl_defs_text(model->defs, pairs[i]);
		const char *value = text ? split(text, name) : NULL;

		if (value && !has_key(model, pairs, i, name))
			sl_json_string(j, name, value);
	}
	sl_json_end(j);
}
