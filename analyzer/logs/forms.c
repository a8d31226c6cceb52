/* SPDX-License-Identifier: MIT */
#include "analyzer/logs/forms.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"

#define ROW(form, means, cause, pattern, since, source)                                                                            \
	{SL_LOG_FORM_##form, SL_LOG_##means, SL_LOG_CAUSE_##cause, pattern, since, source},
static const struct sl_log_row rows[] = {
#include "analyzer/logs/forms.def"
};
#undef ROW

#define SKIP	  600 /* bytes that * may be */
#define WORDS	  64  /* longest words that a row is found by */
#define TOO_LARGE 0x1p50

static const char *const figure_names[] = {
#define FIGURE(name) #name,
	SL_LOG_FIGURES(FIGURE)
#undef FIGURE
};
static const char *const text_names[] = {
#define TEXT(name) #name,
	SL_LOG_TEXTS(TEXT)
#undef TEXT
};

/* What a row is found by: its first literal, without the escapes; rows with the same first two bytes are a chain. */
static struct {
	char words[SL_COUNT(rows)][WORDS];
	uint8_t next[SL_COUNT(rows)], first[1 << 16]; /* first, next: index + 1 */
} table;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static unsigned pair_of(const char *at)
{
	return (unsigned char)at[0] | (unsigned)(unsigned char)at[1] << 8;
}

static void make_table(void)
{
	_Static_assert(SL_COUNT(rows) < 255, "the index of a row is a byte");
	for (size_t i = SL_COUNT(rows); i--;) { /* backwards, so that a chain has the order of the rows */
		const char *at = rows[i].pattern;
		unsigned size = 0;

		for (; *at && !strchr("{*[!|", *at) && size < WORDS - 1; at++) {
			at += *at == '\\';
			table.words[i][size++] = *at;
		}
		while (table.words[i][size - 1] == ' ')
			size--;
		table.next[i] = table.first[pair_of(table.words[i])];
		table.first[pair_of(table.words[i])] = (uint8_t)(i + 1);
	}
}

const struct sl_log_row *sl_log_rows(size_t *count)
{
	*count = SL_COUNT(rows);
	return rows;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* A blank of the words is any number of blanks in the text. */
static bool begins(const char *at, size_t left, unsigned row)
{
	const char *end = at + left;

	for (const char *word = table.words[row]; *word; word++) {
		if (at == end || !(*word == ' ' ? is_blank(*at) : *at == *word))
			return false;
		for (at++; *word == ' ' && at < end && is_blank(*at); at++)
			;
	}
	return true;
}

/* Most rows end at their third letter. */
static bool may_begin(const char *at, size_t left, unsigned row)
{
	char third = table.words[row][2];

	return left < 3 || !third || third == ' ' || at[2] == third || table.words[row][1] == ' ';
}

/* A capital behind a letter: "MemoryError" in OutOfMemoryError.  The n of an escaped line break is none. */
static bool is_within_word(const char *text, size_t at)
{
	return at && isupper((unsigned char)text[at]) && isalpha((unsigned char)text[at - 1]) && !(at > 1 && text[at - 2] == '\\');
}

size_t sl_log_find(const char *text, size_t size, size_t from, size_t end)
{
	pthread_once(&once, make_table);
	for (size_t i = from; i < end && i + 1 < size; i++)
		for (unsigned row = table.first[pair_of(text + i)]; row; row = table.next[row - 1])
			if (may_begin(text + i, size - i, row - 1) && begins(text + i, size - i, row - 1) &&
			    !is_within_word(text, i))
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

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A number with commas between its digits, and what stands behind it. */
static const char *read_number(const char *at, double *value)
{
	char digits[32];
	size_t size = 0;

	at = skip_blanks(at);
	if (*at == '-')
		digits[size++] = *at++;
	while (size < sizeof(digits) - 1 && (is_digit(*at) || (strchr(".,", *at) && *at && is_digit(at[1])))) {
		bool fraction = *at == ',' && is_digit(at[2]) && !is_digit(at[3]); /* 1900,00 of some locales */

		if (*at == ',' && !fraction && !(size && is_digit(at[2]) && is_digit(at[3])))
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
	static const struct {
		const char *name;
		double scale;
	} units[] = {{"bytes", 1},   {"byte", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
		     {"KB", 0x1p10}, {"MB", 0x1p20}, {"GB", 0x1p30},  {"TB", 0x1p40},  {"kB", 0x1p10},	{"K", 0x1p10},
		     {"M", 0x1p20},  {"G", 0x1p30},  {"T", 0x1p40},   {"B", 1}};

	at = skip_blanks(at);
	for (size_t i = 0; i < SL_COUNT(units); i++)
		if (!strncmp(at, units[i].name, strlen(units[i].name))) {
			*scale = units[i].scale;
			return at + strlen(units[i].name);
		}
	return NULL;
}

/* What is negative, or larger than any memory, is no size: an overflow, or a library's "no limit". */
static const char *read_size(const char *at, double scale, uint64_t *bytes)
{
	double value;

	at = read_number(at, &value);
	if (at && !scale)
		at = read_unit(at, &scale);
	*bytes = at && value >= 0 && value * scale < TOO_LARGE ? (uint64_t)(value * scale + 0.5) : SL_LOG_UNKNOWN;
	return at;
}

static int index_of(const char *name, size_t size, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(names[i]) == size && !strncmp(names[i], name, size))
			return (int)i;
	return -1;
}

/* The literal that follows in the pattern, up to its next special character. */
static size_t literal_size(const char *pattern)
{
	return strcspn(pattern, "{*[]!|\\ ");
}

/* Where the literal begins in the text, SKIP bytes from here at most; NULL: nowhere. */
static const char *seek(const char *at, const char *pattern)
{
	size_t size;

	pattern += strspn(pattern, " ");
	size = literal_size(pattern);
	if (!size && strchr("\\]", *pattern) && *pattern)
		return strchr(at, *pattern == '\\' ? pattern[1] : ']');
	if (!size)
		return at;
	for (unsigned i = 0; i < SKIP && at[i]; i++)
		if (!strncmp(at + i, pattern, size))
			return at + i;
	return NULL;
}

static const char *follow_group(const char *pattern, const char *stop, const char *at, struct sl_log_match *match);
static const char *read_others(const char *at, struct sl_log_match *match);

/* Reads the field {name:kind} at *pattern, and moves both behind it. */
static const char *read_field(const char **pattern, const char *at, struct sl_log_match *match)
{
	const char *name = *pattern + 1, *end = strchr(name, '}');
	size_t size = strcspn(name, ":}");
	char kind = name[size] == ':' ? name[size + 1] : 0;
	int figure = index_of(name, size, figure_names, SL_COUNT(figure_names)), text;
	uint64_t bytes = SL_LOG_UNKNOWN;
	double value;

	*pattern = end + 1;
	if (size == 6 && !strncmp(name, "others", 6))
		return read_others(at, match);
	if (kind == 's') {
		const char *begin = skip_blanks(at), *to = seek(begin, end + 1);

		text = index_of(name, size, text_names, SL_COUNT(text_names));
		if (!to || text < 0)
			return NULL;
		match->text[text].at = begin;
		match->text[text].size = (size_t)(to - begin);
		return to;
	}
	if (kind == 'i' || kind == 'f') {
		at = read_number(at, &value);
		if (at && value >= 0 && value < 1e15)
			bytes = (uint64_t)(kind == 'f' ? value * 1e6 + 0.5 : value);
	} else {
		at = read_size(at, kind == 'B' ? 1 : kind == 'M' ? 0x1p20 : kind == 'G' ? 0x1p30 : 0, &bytes);
	}
	if (at && figure >= 0)
		match->figure[figure] = bytes;
	return at;
}

static const char *group_end(const char *pattern)
{
	unsigned depth = 1;

	for (; *pattern; pattern++) {
		if (*pattern == '\\')
			pattern++;
		else if (*pattern == '[')
			depth++;
		else if (*pattern == ']' && !--depth)
			return pattern;
	}
	return pattern;
}

/* Follows the pattern up to `stop`.  Returns where the text is behind it; NULL: it does not match, and does up to *end. */
static const char *follow(const char *pattern, const char *stop, const char *at, struct sl_log_match *match, const char **end)
{
	while (at && pattern < stop) {
		const char *rest = pattern + 1;

		switch (*pattern) {
		case '{':
			at = read_field(&pattern, at, match);
			break;
		case '*':
			at = seek(at, ++pattern);
			break;
		case '[':
			pattern = group_end(rest);
			at = follow_group(rest, pattern++, at, match);
			break;
		case '!':
			pattern++;
			break;
		case '|':
			at = *at == '\n' || !*at ? at : NULL;
			pattern++;
			break;
		case ' ':
			at = skip_blanks(at);
			pattern++;
			break;
		default:
			pattern += *pattern == '\\';
			at = *at == *pattern++ ? at + 1 : NULL;
		}
		*end = at ? at : *end;
	}
	return at;
}

/* PyTorch's list of processes of the card, and what it says of its own. */
static const char *read_others(const char *at, struct sl_log_match *match)
{
	static const char own[] = "Including non-PyTorch memory, this process has {process} memory in use.",
			  other[] = "Process {pid:i} has {more} memory in use.";
	const char *end = at;

	for (const char *begin = at = skip_blanks(at);; begin = at = skip_blanks(at)) {
		struct sl_log_match one;

		at = follow(other, other + sizeof(other) - 1, begin, &one, &end);
		if (!at)
			at = follow(own, own + sizeof(own) - 1, begin, match, &end);
		else if (match->others < SL_LOG_OTHERS) {
			match->other[match->others].pid = (int64_t)one.figure[SL_LOG_pid];
			match->other[match->others++].bytes = one.figure[SL_LOG_more];
		}
		if (!at)
			return begin;
	}
}

static const char *follow_group(const char *pattern, const char *stop, const char *at, struct sl_log_match *match)
{
	struct sl_log_match before = *match;
	const char *end = at, *behind = follow(pattern, stop, at, match, &end);

	if (!behind)
		*match = before;
	return behind ? behind : at;
}

static bool match_row(unsigned index, const char *at, struct sl_log_match *match)
{
	const char *pattern = rows[index].pattern, *must = strchr(pattern, '!'), *stop = pattern + strlen(pattern);

	*match = (struct sl_log_match){.row = &rows[index], .end = at};
	memset(match->figure, 0xff, sizeof(match->figure));
	if (!must)
		must = rows[index].means == SL_LOG_SAY ? stop : pattern;
	at = follow(pattern, must, at, match, &match->end);
	if (at)
		follow(must, stop, at, match, &match->end);
	return at != NULL;
}

bool sl_log_match(const char *at, struct sl_log_match *match)
{
	size_t left = strnlen(at, 4 * WORDS);

	for (unsigned row = table.first[pair_of(at)]; row; row = table.next[row - 1])
		if (begins(at, left, row - 1) && match_row(row - 1, at, match))
			return true;
	return false;
}
