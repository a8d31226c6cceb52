/* SPDX-License-Identifier: MIT */
/*
 * The card of a run: what a catalogue keeps of it.  Its size is limited whatever the run's, and reading it needs no trace.  It
 * can be written as JSON and read back, so a process that may not touch the catalogue (server/child) can make one for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/base/arena.h"
#include "analyzer/base/json.h"
#include "analyzer/base/value.h"
#include "analyzer/base/vector.h"

/* Limits of one card; the largest items are kept, and `left_out` counts the others. */
#define SL_CARD_TEXT	 1024 /* bytes of a text */
#define SL_CARD_METRICS	 4096
#define SL_CARD_NAMES	 8192
#define SL_CARD_SESSIONS 8192

/* One quantity of a place, label or library; of, key and what are those of analyzer/gate/measure.h. */
struct sl_card_metric {
	const char *of, *key, *what;
	int64_t bytes; /* -1: unknown */
};

/* Names by which a search finds a run.  Texts of card.def are names too; their kinds begin at SL_NAME_CARD. */
enum sl_name_kind {
	SL_NAME_LABEL,
	SL_NAME_FUNCTION,
	SL_NAME_FILE,
	SL_NAME_LIBRARY,
	SL_NAME_PLACE,
	SL_NAME_META, /* KEY=VALUE of its metadata */
	SL_NAME_KIND_COUNT,
	SL_NAME_CARD = 16
};
extern const char *const sl_name_kinds[SL_NAME_KIND_COUNT]; /* label, function, file, library, place, meta */
struct sl_card_name {
	enum sl_name_kind kind;
	const char *text;
};

struct sl_card_session {
	const char *id, *host, *status;
	int64_t pid, rank; /* -1: unknown */
	bool bundle;	   /* it has an out-of-memory bundle */
};

/* Unknown texts are NULL, unknown numbers -1.  Everything is in the arena. */
struct sl_card {
	struct sl_arena arena;
	int64_t run; /* number in the catalogue, if it was read from one */
#define ID			       const char *
#define TEXT			       const char *
#define TIME			       int64_t
#define BYTES			       int64_t
#define COUNT			       int64_t
#define CARD(member, type, name, help) type member;
#include "analyzer/catalogue/card.def"
#undef CARD
#undef ID
#undef TEXT
#undef TIME
#undef BYTES
#undef COUNT
	SL_VECTOR(struct sl_card_metric) metrics;
	SL_VECTOR(struct sl_card_name) names;
	SL_VECTOR(struct sl_card_session) sessions;
	uint64_t left_out;
};

/* card.def as a table. */
enum sl_card_type { SL_CARD_ID, SL_CARD_TEXT_TYPE, SL_CARD_TIME, SL_CARD_BYTES, SL_CARD_COUNT };
struct sl_card_field {
	const char *column, *name, *help;
	enum sl_card_type type;
	size_t offset;
};
extern const struct sl_card_field sl_card_fields[];
extern const unsigned sl_card_field_count;
/* Index of the field with that name in queries; -1: none. */
int sl_card_field(const char *name);

static inline bool sl_card_is_text(const struct sl_card_field *field)
{
	return field->type == SL_CARD_ID || field->type == SL_CARD_TEXT_TYPE;
}
static inline const char **sl_card_text(const struct sl_card *card, const struct sl_card_field *field)
{
	return (const char **)((char *)card + field->offset);
}
static inline int64_t *sl_card_number(const struct sl_card *card, const struct sl_card_field *field)
{
	return (int64_t *)((char *)card + field->offset);
}

void sl_card_init(struct sl_card *card); /* sets everything to unknown */
void sl_card_free(struct sl_card *card);

/*
 * The text, or a longer one's beginning with a hash of the whole, SL_CARD_TEXT bytes at most: different texts stay different, and
 * a text that was cut stays as it is.  NULL gives NULL.
 */
const char *sl_card_cut(struct sl_arena *arena, const char *text);
/* The same in the card's arena; "" gives NULL. */
const char *sl_card_keep(struct sl_card *card, const char *text);
void sl_card_add_metric(struct sl_card *card, const char *of, const char *key, const char *what, int64_t bytes);
void sl_card_add_name(struct sl_card *card, enum sl_name_kind kind, const char *text);
void sl_card_add_session(struct sl_card *card, const struct sl_card_session *session);

/* Writes an object; whole: with metrics, names and sessions. */
void sl_card_write(struct sl_json *j, const char *key, const struct sl_card *card, bool whole);
/*
 * Reads such an object from an untrusted value into an initialized card; a member of another type is unknown.  False: not an
 * object, or without identity.
 */
bool sl_card_read(struct sl_card *card, const struct sl_value *value);
