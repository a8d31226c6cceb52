/* SPDX-License-Identifier: MIT */
/*
 * Any bytes given to the catalogue, the server or a recorded program must not crash or hang them.  FUZZ in the environment says which:
 *
 *	cards		the JSON that a child of the server makes of a pack; then what it is found by
 *	queries		a query, and behind a line "=" a form of the server, over a catalogue of one run
 *	catalogues	the database
 *	tokens		the server's file, and a token behind a line "="
 *	variables	values of the variables of the environment, a line each
 */
#include <fcntl.h>

#include "agent/process/process.h"
#include "analyzer/catalogue/catalogue.h"
#include "folder.h"
#include "tools/server/server.h"

/* The text before a line "=", NUL-terminated and malloc'ed, and what is behind it. */
static char *first_part(const uint8_t *bytes, size_t size, char **rest)
{
	const uint8_t *end = memmem(bytes, size, "\n=\n", 3);
	char *text = strndup((const char *)bytes, end ? (size_t)(end - bytes) : size);

	*rest = strndup(end ? (const char *)end + 3 : "", end ? size - (size_t)(end + 3 - bytes) : 0);
	if (!text || !*rest)
		abort();
	return text;
}

static bool each_card(void *context, const struct sl_card *card)
{
	struct sl_json *j = sl_json_new(nowhere, SL_JSON_PYTHON);

	sl_card_write(j, NULL, card, true);
	sl_json_close(j);
	return true;
}

static bool each_name(void *context, enum sl_name_kind kind, const char *text, int64_t runs)
{
	return strlen(text) + (size_t)runs > 0;
}

static bool each_metric(void *context, const struct sl_store_metric *metric)
{
	return strlen(metric->what) + strlen(metric->key) + strlen(metric->of) > 0;
}

static bool each_note(void *context, const struct sl_store_note *note)
{
	return strlen(note->text) > 0;
}

static bool each_point(void *context, const struct sl_store_point *point)
{
	return point->run > 0;
}

static void ask(struct sl_store *store, const struct sl_query *query, const char *text)
{
	struct sl_store_ask asked = {.query = query, .order = sl_card_field("peak"), .limit = 50};
	int64_t count;

	sl_store_runs(store, &asked, each_card, NULL);
	sl_store_count(store, query, &count);
	sl_store_metrics(store, query, NULL, text, 50, each_metric, NULL);
	sl_store_history(store, query, 0, sl_card_field("peak"), each_point, NULL);
	sl_store_history(store, query, 1, 0, each_point, NULL);
	sl_store_names(store, text, 50, each_name, NULL);
	sl_store_notes(store, 1, each_note, NULL);
}

/* A catalogue with a run in it, for the targets that need one. */
static struct sl_store *the_store(void)
{
	static struct sl_store *store;
	char why[SL_STORE_WHY];
	struct sl_card card;
	int64_t run;

	if (store)
		return store;
	store = sl_store_open(at("c.sqlite"), true, why);
	sl_card_init(&card);
	card.identity = "id";
	card.project = "train";
	card.peak_bytes = 1 << 20;
	sl_card_add_name(&card, SL_NAME_FUNCTION, "forward");
	sl_card_add_metric(&card, "stack", "00ff", "train.py:3 forward", 4096);
	if (!store || !sl_store_put(store, &card, &run))
		abort();
	sl_card_free(&card);
	return store;
}

static void fuzz_queries(const uint8_t *bytes, size_t size)
{
	char *form, *text = first_part(bytes, size, &form), value[4097];
	struct sl_store_note note = {.at_ns = -1, .author = text, .text = value};
	struct sl_store *store = the_store();
	struct sl_query_error error;
	struct sl_query query;
	int64_t number;

	sl_store_begin(store);
	if (sl_form_value(form, "text", value, sizeof(value)))
		sl_store_note_put(store, 1, &note, &number);
	if (sl_query_parse(&query, text, 1000000000ll * 1790000000, &error))
		ask(store, &query, text);
	sl_query_free(&query);
	sl_store_rollback(store);
	free(text);
	free(form);
}

static void fuzz_cards(const uint8_t *bytes, size_t size)
{
	struct sl_store *store = the_store();
	struct sl_arena arena = {0};
	struct sl_value_error error;
	const struct sl_value *value = sl_value_parse(&arena, (const char *)bytes, size, 1, &error);
	struct sl_card card;
	int64_t run = 0;

	sl_card_init(&card);
	sl_store_begin(store);
	if (value && sl_card_read(&card, value) && sl_store_put(store, &card, &run)) {
		ask(store, NULL, card.identity);
		sl_card_free(&card);
		sl_card_init(&card);
		if (sl_store_card(store, run, &card))
			each_card(NULL, &card);
	}
	sl_store_rollback(store);
	sl_card_free(&card);
	sl_arena_free(&arena);
}

static void fuzz_catalogues(const uint8_t *bytes, size_t size)
{
	char why[SL_STORE_WHY];
	struct sl_store *store = sl_store_open(put("c.sqlite", bytes, size), size % 2, why);
	struct sl_card card;

	if (!store)
		return;
	ask(store, NULL, "t");
	sl_card_init(&card);
	if (sl_store_card(store, 1, &card))
		sl_store_put(store, &card, &card.run);
	sl_card_free(&card);
	sl_store_close(store);
}

static void fuzz_tokens(const uint8_t *bytes, size_t size)
{
	char *presented, *file = first_part(bytes, size, &presented), name[SL_TOKEN_NAME + 1];
	struct sl_tokens tokens = {.folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

	put("tokens", file, strlen(file));
	sl_tokens_rights(&tokens, presented, name);
	close(tokens.folder);
	free(tokens.token.item);
	free(file);
	free(presented);
}

static void fuzz_variables(const uint8_t *bytes, size_t size)
{
	char *rest, *text = first_part(bytes, size, &rest), scratch[24], *line = text;
	struct sl_options options = {0};

	for (unsigned i = 0; line; i++)
		sl_options_set(&sl_options_table[i % sl_options_count], &options, strsep(&line, "\n"));
	for (unsigned i = 0; i < sl_options_count; i++)
		sl_options_text(&sl_options_table[i], &options, scratch);
	free(text);
	free(rest);
}

const struct target targets[] = {
	{"queries", fuzz_queries}, {"cards", fuzz_cards},	  {"catalogues", fuzz_catalogues},
	{"tokens", fuzz_tokens},   {"variables", fuzz_variables}, {0},
};
