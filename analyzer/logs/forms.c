/* SPDX-License-Identifier: MIT */
/* The sentences of forms.def: where one begins in a line, and what it says. */
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/vector.h"
#include "analyzer/logs/parts.h"
#include "common/base.h"

#define ROW(form, means, cause, pattern, since, source)                                                                            \
	{SL_LOG_FORM_##form, SL_LOG_##means, SL_LOG_CAUSE_##cause, pattern, since, source},
static const struct sl_log_row rows[] = {
#include "analyzer/logs/forms.def"
};

#define SKIP	  600 /* bytes that * may be */
#define WORDS	  64  /* longest words that a row is found by */
#define LETTERS	  3   /* of them, by which they are found */
#define TOO_LARGE 0x1p50

#define FORM(name, program, weight) {#name, program, weight},
#define NAME(name, ...)		    #name,
const struct sl_log_form_row sl_log_forms[] = {SL_LOG_FORMS(FORM)};
const char *const sl_log_causes[] = {SL_LOG_CAUSES(NAME)}, *const sl_log_verdicts[] = {SL_LOG_VERDICTS(NAME)},
		  *const sl_log_figures[] = {SL_LOG_FIGURES(NAME) SL_LOG_TEXTS(NAME)},
		  *const sl_log_doings[] = {SL_LOG_DOINGS(NAME)};

/* What rows are found by: their words before the first figure; those with the same first letters are a chain. */
struct words {
	char text[WORDS];
	unsigned row, next; /* next: index + 1 */
};
static SL_VECTOR(struct words) words;
static uint16_t chains[1 << 13]; /* index + 1 of the first words */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The first of the words with those LETTERS; 8 bytes may be read. */
static uint16_t *chain_of(const char *at)
{
	uint64_t head;

	memcpy(&head, at, sizeof(head));
	return &chains[(head << 40) * 0x9e3779b97f4a7c15 >> 51];
}

/* Adds the words with which the pattern of a row begins; with each of its alternatives it begins anew. */
static void add_words(unsigned row, const char *pattern)
{
	struct words add = {.row = row};
	const char *at = pattern;
	uint16_t *chain;
	size_t size = 0;

	for (; size < WORDS - 1 && *at && !strchr("{*[!|<", *at); at++) {
		at += *at == '\\';
		add.text[size++] = *at;
	}
	if (*at == '<') {
		const char *behind = strchr(at, '>') + 1;

		for (const char *one = at + 1; one < behind; one += strcspn(one, "|>") + 1) {
			char *anew =
				sl_memory_print("%.*s%.*s%s", (int)(at - pattern), pattern, (int)strcspn(one, "|>"), one, behind);

			add_words(row, anew);
			free(anew);
		}
		return;
	}
	while (size > LETTERS && add.text[size - 1] == ' ')
		add.text[--size] = 0;
	chain = chain_of(add.text);
	add.next = *chain;
	*SL_PUSH(&words) = add;
	*chain = (uint16_t)words.count;
}

static void make_table(void)
{
	for (unsigned i = SL_COUNT(rows); i--;) /* backwards, so that a chain has the order of the rows */
		add_words(i, rows[i].pattern);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\n';
}

/* A blank of the words is any number of blanks in the text.  partial: they may go on at a blank behind its end. */
static bool begins(const char *at, const char *word, bool partial)
{
	for (; *word && *at; word++) {
		if (!(*word == ' ' ? is_blank(*at) : *at == *word))
			return false;
		for (at++; *word == ' ' && is_blank(*at); at++)
			;
	}
	return !*word || (partial && (*word == ' ' || word[-1] == ' '));
}

/* A capital behind a letter: "MemoryError" in OutOfMemoryError.  The n of an escaped line break is none. */
static bool is_within_word(const char *text, size_t at)
{
	return at && isupper((unsigned char)text[at]) && isalpha((unsigned char)text[at - 1]) && !(at > 1 && text[at - 2] == '\\');
}

size_t sl_log_find(char *text, size_t size, size_t from, const char *next, bool *ahead)
{
	size_t at, least = next ? 1 : LETTERS;
	bool found = false;

	pthread_once(&once, make_table);
	*ahead = false;
	if (next)
		memcpy(text + size, next, SL_LOG_SPARE - 1);
	text[size + SL_LOG_SPARE - 1] = 0;
	for (at = from; at + least <= size && !found; at++)
		for (unsigned n = *chain_of(text + at); n; n = words.item[n - 1].next)
			if (begins(text + at, words.item[n - 1].text, true) && !is_within_word(text, at)) {
				*ahead |= rows[words.item[n - 1].row].means < SL_LOG_LOOK || at + LETTERS > size;
				found = true;
			}
	text[size] = 0;
	return found ? at - 1 : SIZE_MAX;
}

/* Also the two characters \n, which Python's repr and JSON have in place of a line break. */
static const char *skip_blanks(const char *at)
{
	while (is_blank(*at) || (at[0] == '\\' && at[1] == 'n'))
		at += *at == '\\' ? 2 : 1;
	return at;
}

/* A number with commas between its digits.  Returns the text behind it. */
static const char *read_number(const char *at, double *value)
{
	char digits[32], *end;
	size_t size = 0;

	for (; size < sizeof(digits) - 1; at++) {
		bool fraction = *at == ',' && SL_LOG_IS_DIGIT(at[1]) && SL_LOG_IS_DIGIT(at[2]) &&
				!SL_LOG_IS_DIGIT(at[3]); /* 1900,00 of some locales */

		if (*at == ',' && size && strspn(at + 1, SL_LOG_DIGITS) >= 3)
			continue;
		if (!SL_LOG_IS_DIGIT(*at) && !fraction && !(*at && strchr(size ? "." : "-.", *at) && SL_LOG_IS_DIGIT(at[1])))
			break;
		digits[size++] = fraction ? '.' : *at;
	}
	digits[size] = 0;
	*value = strtod(digits, &end);
	return end > digits ? at : NULL;
}

static const char *read_unit(const char *at, double *scale)
{
	size_t power;

	at = skip_blanks(at);
	power = strcspn("BKMGT", (char[]){*at == 'k' ? 'K' : *at, 0});
	if (power == 5)
		return strncmp(at, "byte", 4) ? NULL : at + 4 + (at[4] == 's');
	*scale = (double)(1ull << 10 * power);
	at += 1 + (at[1] == 'i');
	return at + (power && *at == 'B');
}

int sl_log_index(const char *name, size_t size)
{
	for (size_t i = 0; i < SL_COUNT(sl_log_figures); i++)
		if (strlen(sl_log_figures[i]) == size && !strncmp(sl_log_figures[i], name, size))
			return (int)i;
	return -1;
}

/* Where the next words of the pattern begin in the text, SKIP bytes from here at most; NULL: nowhere. */
static const char *seek(const char *at, const char *pattern)
{
	bool apart = *pattern == ' ';
	size_t size;

	pattern += strspn(pattern, " ");
	size = strcspn(pattern, "{*[]<>!|\\ ");
	if (!size && *pattern == '|')
		return at + strcspn(at, "\n");
	if (!size && *pattern && strchr("\\]", *pattern))
		return strchr(at, *pattern == '\\' ? pattern[1] : ']');
	for (unsigned i = 0; i < SKIP && at[i] && size; i++)
		if (at[i] == *pattern && !strncmp(at + i, pattern, size) && (!apart || !i || is_blank(at[i - 1])))
			return at + i;
	return size ? NULL : at;
}

/* Reads the field {name:kind} at *pattern, and moves both behind it. */
static const char *read_field(const char **pattern, const char *at, struct sl_log_match *match)
{
	const char *name = *pattern + 1, *end = strchr(name, '}'), *to;
	size_t size = strcspn(name, ":}");
	char kind = name[size] == ':' ? name[size + 1] : 0;
	int index = sl_log_index(name, size);
	double value, scale = kind == 'f' ? 1e6 : kind == 'M' ? 0x1p20 : kind == 'G' ? 0x1p30 : 1;
	struct sl_log_facts *facts = &match->facts;

	*pattern = end + 1;
	at = skip_blanks(at);
	if (kind == 's' || kind == 'w') { /* any text up to the next words of the pattern, or a word */
		to = kind == 'w' ? at + strcspn(at, " \n") : seek(at, end + 1);
		for (size = to ? (size_t)(to - at) : 0; size && is_blank(at[size - 1]); size--)
			;
		snprintf(facts->text[index - SL_LOG_FIGURE_COUNT], SL_LOG_LONGEST, "%.*s", (int)size, at);
		return to;
	}
	at = read_number(at, &value);
	if (at && !kind)
		at = read_unit(at, &scale);
	if (!at || index < 0)
		return at;
	/* what is negative or larger than any memory is an overflow, or a library's "no limit" */
	value = value * scale + (kind == 'i' ? 0 : 0.5);
	facts->figure[index] = value >= 0 && value < TOO_LARGE ? (uint64_t)value : SL_LOG_UNKNOWN;
	if (index == SL_LOG_other && SL_LOG_KNOWN(facts->figure[index]) && facts->others < SL_LOG_OTHERS) {
		facts->other[facts->others].pid = facts->figure[SL_LOG_pid];
		facts->other[facts->others++].bytes = facts->figure[SL_LOG_other];
	}
	return at;
}

static const char *follow(const char *pattern, const char *stop, const char *at, struct sl_log_match *match);

/* Follows [...], which may be missing, and [+...] as often as it stands, or the first of <...|...> that matches. */
static const char *follow_group(const char **pattern, const char *at, struct sl_log_match *match)
{
	const char *begin = *pattern, *one = begin + 1 + (begin[1] == '+'), *p = one, *behind = NULL;
	bool optional = *begin == '[';

	for (unsigned depth = 1; depth; p++) {
		depth += (*p == '[' || *p == '<') - (*p == ']' || *p == '>');
		if (!behind && (!depth || (depth == 1 && !optional && *p == '|'))) {
			struct sl_log_match before = *match;

			behind = follow(one, p, at, match);
			if (!behind)
				*match = before;
			one = p + 1;
		}
		p += *p == '\\';
	}
	*pattern = behind && begin[1] == '+' ? begin : p;
	return behind ?: optional ? at : NULL;
}

/* Follows the pattern up to `stop`.  Returns where the text is behind it; NULL: it does not match, and does up to match->end. */
static const char *follow(const char *pattern, const char *stop, const char *at, struct sl_log_match *match)
{
	while (at && pattern < stop) {
		char c = *pattern;

		if (c == '{')
			at = read_field(&pattern, at, match);
		else if (c == '[' || c == '<')
			at = follow_group(&pattern, at, match);
		else if (pattern++, c == '*')
			at = seek(at, pattern);
		else if (c == ' ')
			at = skip_blanks(at);
		else if (c == '|')
			at = *at == '\n' || !*at ? at : NULL;
		else if (c == '!')
			match->sure = true;
		else
			at = *at == (c == '\\' ? *pattern++ : c) ? at + 1 : NULL;
		match->end = at ?: match->end;
	}
	return at;
}

bool sl_log_match(const char *at, struct sl_log_match *match)
{
	for (unsigned n = strnlen(at, LETTERS) < LETTERS ? 0 : *chain_of(at); n; n = words.item[n - 1].next) {
		const struct sl_log_row *row = &rows[words.item[n - 1].row];

		if (!begins(at, words.item[n - 1].text, false))
			continue;
		*match = (struct sl_log_match){.row = row, .end = at};
		match->sure = row->means != SL_LOG_SAY && !strchr(row->pattern, '!');
		memset(match->facts.figure, 0xff, sizeof(match->facts.figure));
		if (follow(row->pattern, row->pattern + strlen(row->pattern), at, match) || match->sure)
			return true;
	}
	return false;
}
