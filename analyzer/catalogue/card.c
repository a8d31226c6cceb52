/* SPDX-License-Identifier: MIT */
#include "analyzer/catalogue/catalogue.h"

#include <inttypes.h>

#include "analyzer/base/format.h"
#include "common/fnv.h"

#define HASH 19 /* bytes of the hash of a text that was cut */

const char *const sl_name_kinds[SL_NAME_KIND_COUNT] = {"label", "function", "file", "library", "place", "meta"};

#define ID			       SL_CARD_ID
#define TEXT			       SL_CARD_TEXT_TYPE
#define TIME			       SL_CARD_TIME
#define BYTES			       SL_CARD_BYTES
#define COUNT			       SL_CARD_COUNT
#define CARD(member, type, name, help) {#member, name, help, type, offsetof(struct sl_card, member)},
const struct sl_card_field sl_card_fields[] = {
#include "analyzer/catalogue/card.def"
};
#undef CARD
const unsigned sl_card_field_count = sizeof(sl_card_fields) / sizeof(sl_card_fields[0]);

int sl_card_field(const char *name)
{
	for (unsigned i = 0; i < sl_card_field_count; i++)
		if (!strcmp(sl_card_fields[i].name, name))
			return (int)i;
	return -1;
}

const char *sl_card_peak(char out[SL_CARD_PEAK], int64_t bytes, int64_t lost)
{
	if (bytes < 0)
		return NULL;
	snprintf(out, SL_CARD_PEAK, "%s%s", lost > 0 ? "at least " : "", SL_SIZE((uint64_t)bytes));
	return out;
}

void sl_card_init(struct sl_card *card)
{
	*card = (struct sl_card){.run = -1};
	for (unsigned i = 0; i < sl_card_field_count; i++)
		if (!sl_card_is_text(&sl_card_fields[i]))
			*sl_card_number(card, &sl_card_fields[i]) = -1;
}

void sl_card_free(struct sl_card *card)
{
	sl_arena_free(&card->arena);
	free(card->metrics.item);
	free(card->names.item);
	free(card->sessions.item);
	*card = (struct sl_card){0};
}

/* The bytes of whole characters at the beginning of a longer text, at most `limit`. */
static size_t beginning_of(const char *text, size_t limit)
{
	size_t size = 0;

	for (;;) {
		unsigned step = sl_utf8_sequence(text + size, SL_UTF8_SEQUENCE);

		step = step ? step : 1;
		if (size + step > limit)
			return size;
		size += step;
	}
}

const char *sl_card_cut(struct sl_arena *arena, const char *text)
{
	if (!text || strnlen(text, SL_CARD_TEXT + 1) <= SL_CARD_TEXT)
		return text ? sl_arena_strdup(arena, text) : NULL;
	return sl_arena_printf(arena, "%.*s...%016" PRIx64, (int)beginning_of(text, SL_CARD_TEXT - HASH), text, sl_fnv_text(text));
}

const char *sl_card_keep(struct sl_card *card, const char *text)
{
	return text && *text ? sl_card_cut(&card->arena, text) : NULL;
}

void sl_card_add_metric(struct sl_card *card, const char *of, const char *key, const char *what, int64_t bytes)
{
	if (card->metrics.count == SL_CARD_METRICS || !of || !*of || !key || !*key) {
		card->left_out++;
		return;
	}
	*SL_PUSH(&card->metrics) =
		(struct sl_card_metric){sl_card_keep(card, of), sl_card_keep(card, key), sl_card_keep(card, what), bytes};
}

void sl_card_add_name(struct sl_card *card, enum sl_name_kind kind, const char *text)
{
	if (!text || !*text)
		return;
	if (card->names.count == SL_CARD_NAMES)
		card->left_out++;
	else
		*SL_PUSH(&card->names) = (struct sl_card_name){kind, sl_card_keep(card, text)};
}

void sl_card_add_session(struct sl_card *card, const struct sl_card_session *session)
{
	struct sl_card_session *to;

	if (card->sessions.count == SL_CARD_SESSIONS || !session->id || !*session->id) {
		card->left_out++;
		return;
	}
	to = SL_PUSH(&card->sessions);
	*to = *session;
	to->id = sl_card_keep(card, session->id);
	to->host = sl_card_keep(card, session->host);
	to->status = sl_card_keep(card, session->status);
}

/* ---- JSON */

static void write_lists(struct sl_json *j, const struct sl_card *card)
{
	sl_json_array(j, "metrics");
	for (size_t i = 0; i < card->metrics.count; i++) {
		sl_json_object(j, NULL);
		sl_json_string(j, "of", card->metrics.item[i].of);
		sl_json_string(j, "key", card->metrics.item[i].key);
		sl_json_string(j, "what", card->metrics.item[i].what);
		sl_json_known(j, "bytes", card->metrics.item[i].bytes);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_object(j, "names");
	for (unsigned kind = 0; kind < SL_NAME_KIND_COUNT; kind++) {
		sl_json_array(j, sl_name_kinds[kind]);
		for (size_t i = 0; i < card->names.count; i++)
			if (card->names.item[i].kind == kind)
				sl_json_string(j, NULL, card->names.item[i].text);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_array(j, "sessions");
	for (size_t i = 0; i < card->sessions.count; i++) {
		const struct sl_card_session *session = &card->sessions.item[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "session_id", session->id);
		sl_json_string(j, "host", session->host);
		sl_json_string(j, "status", session->status);
		sl_json_known(j, "pid", session->pid);
		sl_json_known(j, "rank", session->rank);
		sl_json_bool(j, "has_oom_bundle", session->bundle);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_uint(j, "left_out", card->left_out);
}

void sl_card_write(struct sl_json *j, const char *key, const struct sl_card *card, bool whole)
{
	sl_json_object(j, key);
	for (unsigned i = 0; i < sl_card_field_count; i++) {
		const struct sl_card_field *field = &sl_card_fields[i];

		if (sl_card_is_text(field))
			sl_json_string(j, field->name, *sl_card_text(card, field));
		else
			sl_json_known(j, field->name, *sl_card_number(card, field));
	}
	if (whole)
		write_lists(j, card);
	sl_json_end(j);
}

static int64_t number_of(const struct sl_value *object, const char *key)
{
	int64_t number;

	return sl_value_get_int64(object, key, &number) && number >= 0 ? number : -1;
}

static void read_metric(struct sl_card *card, const struct sl_value *item)
{
	sl_card_add_metric(card, sl_value_get_text(item, "of"), sl_value_get_text(item, "key"), sl_value_get_text(item, "what"),
			   number_of(item, "bytes"));
}

static void read_session(struct sl_card *card, const struct sl_value *item)
{
	const struct sl_value *bundle = sl_value_get(item, "has_oom_bundle");
	struct sl_card_session session = {.id = sl_value_get_text(item, "session_id"),
					  .host = sl_value_get_text(item, "host"),
					  .status = sl_value_get_text(item, "status"),
					  .pid = number_of(item, "pid"),
					  .rank = number_of(item, "rank"),
					  .bundle = sl_value_is(bundle, SL_VALUE_BOOL) && bundle->truth};

	sl_card_add_session(card, &session);
}

static void read_list(struct sl_card *card, const struct sl_value *list, void (*read)(struct sl_card *, const struct sl_value *))
{
	for (uint32_t i = 0; sl_value_is(list, SL_VALUE_ARRAY) && i < list->count; i++)
		read(card, &list->items[i]);
}

bool sl_card_read(struct sl_card *card, const struct sl_value *value)
{
	const struct sl_value *names = sl_value_get(value, "names");

	if (!sl_value_is(value, SL_VALUE_OBJECT))
		return false;
	for (unsigned i = 0; i < sl_card_field_count; i++) {
		const struct sl_card_field *field = &sl_card_fields[i];

		if (sl_card_is_text(field))
			*sl_card_text(card, field) = sl_card_keep(card, sl_value_get_text(value, field->name));
		else
			*sl_card_number(card, field) = number_of(value, field->name);
	}
	read_list(card, sl_value_get(value, "metrics"), read_metric);
	read_list(card, sl_value_get(value, "sessions"), read_session);
	for (unsigned kind = 0; kind < SL_NAME_KIND_COUNT; kind++) {
		const struct sl_value *list = sl_value_get(names, sl_name_kinds[kind]);

		for (uint32_t i = 0; sl_value_is(list, SL_VALUE_ARRAY) && i < list->count; i++)
			if (list->items[i].kind == SL_VALUE_STRING)
				sl_card_add_name(card, kind, list->items[i].text);
	}
	card->left_out += number_of(value, "left_out") > 0 ? (uint64_t)number_of(value, "left_out") : 0;
	return card->identity != NULL;
}
