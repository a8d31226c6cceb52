/* SPDX-License-Identifier: MIT */
/* The sentences of forms.def: where one begins in a line, and what it says. */
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/vector.h"
#include "analyzer/logs/parts.h"
#include "common/base.h"

#define ROW(form, means, cause, pattern, since, source)                                                                            \
	{SL_LOG_FORM_##form, SL_LOG_##means, SL_LOG_CAUSE_##cause, pattern, since, source},
static const struct sl_log_row rows[] = {
#include "analyzer/logs/forms.def"
};
#undef ROW

#define SKIP	  600 /* bytes that * may be */
#define WORDS	  64  /* longest words that a row is found by */
#define LETTERS	  3   /* of them, by which they are found */
#define TOO_LARGE 0x1p50

#define FORM(name, program, weight) {#name, program, weight},
#define NAME(name, ...)		    #name,
const struct sl_log_form_row sl_log_forms[] = {SL_LOG_FORMS(FORM)};
const char *const sl_log_causes[] = {SL_LOG_CAUSES(NAME)}, *const sl_log_verdicts[] = {SL_LOG_VERDICTS(NAME)},
		  *const sl_log_figures[] = {SL_LOG_FIGURES(NAME)}, *const sl_log_texts[] = {SL_LOG_TEXTS(NAME)},
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

/* Adds the words of a row; `size` of them stand in `text` already.  behind: where the pattern goes on behind an alternative. */
static void add_words(unsigned row, const char *pattern, const char *behind, char *text, size_t size)
{
	uint16_t *chain;

	for (; size < WORDS - 1; pattern++) {
		if (behind && *pattern && strchr("|>", *pattern)) {
			pattern = behind;
			behind = NULL;
		}
		if (!*pattern || strchr("{*[!|<", *pattern))
			break;
		pattern += *pattern == '\\';
		text[size++] = *pattern;
	}
	if (*pattern == '<') {
		behind = strchr(pattern, '>') + 1;
		for (pattern++; pattern < behind; pattern += strcspn(pattern, "|>") + 1)
			add_words(row, pattern, behind, text, size);
		return;
	}
	while (size > LETTERS && text[size - 1] == ' ')
		size--;
	memset(text + size, 0, sizeof(uint64_t));
	chain = chain_of(text);
	*SL_PUSH(&words) = (struct words){.row = row, .next = *chain};
	memcpy(words.item[words.count - 1].text, text, size);
	*chain = (uint16_t)words.count;
}

static void make_table(void)
{
	char text[2 * WORDS];

	for (unsigned i = SL_COUNT(rows); i--;) /* backwards, so that a chain has the order of the rows */
		add_words(i, rows[i].pattern, NULL, text, 0);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\n';
}

/* A blank of the words is any number of blanks in the text.  partial: they may go on at a blank behind its end; next: or there. */
static bool begins(const char *at, const char *end, const char *word, bool partial, const char *next)
{
	for (; *word; word++) {
		if (at == end && next) {
			at = next;
			end = at + strlen(at);
			next = NULL;
		}
		if (at == end)
			return partial && (*word == ' ' || word[-1] == ' ');
		if (!(*word == ' ' ? is_blank(*at) : *at == *word))
			return false;
		for (at++; *word == ' ' && at < end && is_blank(*at); at++)
			;
	}
	return true;
}

/* A capital behind a letter: "MemoryError" in OutOfMemoryError.  The n of an escaped line break is none. */
static bool is_within_word(const char *text, size_t at)
{
	return at && isupper((unsigned char)text[at]) && isalpha((unsigned char)text[at - 1]) && !(at > 1 && text[at - 2] == '\\');
}

size_t sl_log_find(const char *text, size_t size, size_t from, const char *next, bool *ahead)
{
	size_t i = from;

	*ahead = false;
	pthread_once(&once, make_table);
	for (unsigned n; i + LETTERS <= size; i++) {
		bool found = false;

		if (!(n = *chain_of(text + i)))
			continue;
		for (; n; n = words.item[n - 1].next)
			if (begins(text + i, text + size, words.item[n - 1].text, true, next) && !is_within_word(text, i)) {
				*ahead |= rows[words.item[n - 1].row].means < SL_LOG_LOOK;
				found = true;
			}
		if (found)
			return i;
	}
	*ahead = true;
	for (; i < size && next; i++)
		for (size_t n = 0; n < words.count; n++)
			if (*words.item[n].text == text[i] && begins(text + i, text + size, words.item[n].text, true, next))
				return i;
	return SIZE_MAX;
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
	char digits[32];
	size_t size = 0;

	at = skip_blanks(at);
	if (*at == '-')
		digits[size++] = *at++;
	while (size < sizeof(digits) - 1 && (sl_log_digit(*at) || (strchr(".,", *at) && *at && sl_log_digit(at[1])))) {
		bool fraction = *at == ',' && sl_log_digit(at[2]) && !sl_log_digit(at[3]); /* 1900,00 of some locales */

		if (*at == ',' && !fraction && !(size && sl_log_digit(at[2]) && sl_log_digit(at[3])))
			break;
		if (*at++ != ',' || fraction)
			digits[size++] = fraction ? '.' : at[-1];
	}
	digits[size] = 0;
	*value = size && digits[size - 1] != '-' ? strtod(digits, NULL) : 0;
	return size && digits[size - 1] != '-' ? at : NULL;
}

static const char *read_unit(const char *at, double *scale)
{
	static const char letters[] = "BKMGT";
	const char *letter;

	at = skip_blanks(at);
	*scale = 1;
	if (!strncmp(at, "byte", 4))
		return at + 4 + (at[4] == 's');
	letter = *at ? strchr(letters, *at == 'k' ? 'K' : *at) : NULL;
	if (!letter)
		return NULL;
	*scale = (double)(1ull << 10 * (letter - letters));
	at += 1 + (at[1] == 'i');
	return at + (letter > letters && *at == 'B');
}

static int index_of(const char *name, size_t size, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(names[i]) == size && !strncmp(names[i], name, size))
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

static const char *follow(const char *pattern, const char *stop, const char *at, struct sl_log_match *match, const char **end);

/* PyTorch's list of processes of the card, and what it says of its own. */
static const char *read_others(const char *at, struct sl_log_match *match)
{
	static const char one[] =
		"<Including non-PyTorch memory, this process has {process}|Process {pid:i} has {more}> memory in use.";
	struct sl_log_said *said = &match->said;
	const char *begin, *end;

	do {
		uint64_t *pid = &said->figure[SL_LOG_pid], *bytes = &said->figure[SL_LOG_more];

		begin = skip_blanks(at);
		at = follow(one, one + sizeof(one) - 1, begin, match, &end);
		if (at && SL_LOG_KNOWN(*bytes) && said->others < SL_LOG_OTHERS) {
			said->other[said->others].pid = *pid;
			said->other[said->others++].bytes = *bytes;
		}
		*pid = *bytes = SL_LOG_UNKNOWN;
	} while (at);
	return begin;
}

/* A word, or any text up to the next words of the pattern. */
static const char *read_text(const char *at, bool word, const char *pattern, char *text)
{
	const char *to = word ? at + strcspn(at, " \n") : seek(at, pattern);
	size_t size = to ? (size_t)(to - at) : 0;

	while (size && is_blank(at[size - 1]))
		size--;
	snprintf(text, SL_LOG_LONGEST, "%.*s", (int)size, at);
	return to;
}

/* Reads the field {name:kind} at *pattern, and moves both behind it. */
static const char *read_field(const char **pattern, const char *at, struct sl_log_match *match)
{
	const char *name = *pattern + 1, *end = strchr(name, '}');
	size_t size = strcspn(name, ":}");
	char kind = name[size] == ':' ? name[size + 1] : 0;
	int figure = index_of(name, size, sl_log_figures, SL_LOG_FIGURE_COUNT);
	double value, scale = kind == 'f' ? 1e6 : kind == 'M' ? 0x1p20 : kind == 'G' ? 0x1p30 : 1;

	*pattern = end + 1;
	if (size == 6 && !strncmp(name, "others", 6))
		return read_others(at, match);
	if (kind == 's' || kind == 'w')
		return read_text(skip_blanks(at), kind == 'w', end + 1,
				 match->said.text[index_of(name, size, sl_log_texts, SL_LOG_TEXT_COUNT)]);
	at = read_number(at, &value);
	if (at && !kind)
		at = read_unit(at, &scale);
	if (at && figure >= 0) /* what is negative or larger than any memory is an overflow, or a library's "no limit" */
		match->said.figure[figure] = value >= 0 && value * scale < TOO_LARGE
						     ? (uint64_t)(value * scale + (kind == 'i' ? 0 : 0.5))
						     : SL_LOG_UNKNOWN;
	return at;
}

/* Follows [...], which may be missing, or the first of <...|...> that matches; moves *pattern behind it. */
static const char *follow_group(const char **pattern, const char *at, struct sl_log_match *match)
{
	bool optional = **pattern == '[';
	const char *one = *pattern + 1, *p = one, *end, *behind = NULL;

	for (unsigned depth = 1; depth; p++) {
		depth += (*p == '[' || *p == '<') - (*p == ']' || *p == '>');
		if (!behind && (!depth || (depth == 1 && !optional && *p == '|'))) {
			struct sl_log_match before = *match;

			behind = follow(one, p, at, match, &end);
			if (!behind)
				*match = before;
			one = p + 1;
		}
		p += *p == '\\';
	}
	*pattern = p;
	return behind ? behind : optional ? at : NULL;
}

/* Follows the pattern up to `stop`.  Returns where the text is behind it; NULL: it does not match, and does up to *end. */
static const char *follow(const char *pattern, const char *stop, const char *at, struct sl_log_match *match, const char **end)
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
		else if (c != '!')
			at = *at == (c == '\\' ? *pattern++ : c) ? at + 1 : NULL;
		*end = at ?: *end;
	}
	return at;
}

bool sl_log_match(const char *at, struct sl_log_match *match)
{
	const char *end = at + strnlen(at, 4 * WORDS);

	for (unsigned n = end - at < LETTERS ? 0 : *chain_of(at); n; n = words.item[n - 1].next) {
		const struct sl_log_row *row = &rows[words.item[n - 1].row];
		const char *must = strchr(row->pattern, '!'), *stop = row->pattern + strlen(row->pattern), *behind;

		if (!begins(at, end, words.item[n - 1].text, false, NULL))
			continue;
		*match = (struct sl_log_match){.row = row, .end = at};
		memset(match->said.figure, 0xff, sizeof(match->said.figure));
		must = must ?: row->means == SL_LOG_SAY ? stop : row->pattern;
		behind = follow(row->pattern, must, at, match, &match->end);
		if (behind)
			follow(must, stop, behind, match, &match->end);
		if (behind)
			return true;
	}
	return false;
}
