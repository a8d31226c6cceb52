/* SPDX-License-Identifier: MIT */
#include "agent/process/filter.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define STEPS 100000
#define DEPTH 200

struct matcher {
	const char *text; /* begin of the text, for ^ */
	unsigned steps, depth;
};

/* What must match after the current part: perhaps its group once more, then the rest of the sequence. */
struct then {
	const char *re, *end;
	const char *group, *group_end;
	const char *from; /* where the group began; a group that matched nothing is not repeated */
	const struct then *next;
};

static bool alternatives(struct matcher *m, const char *re, const char *end, const char *text, const struct then *next);

/* The end of the bracket expression that begins at re; NULL: it has none. */
static const char *skip_class(const char *re, const char *end)
{
	re++;
	re += re < end && *re == '^';
	re += re < end && *re == ']'; /* a ] that comes first is an ordinary character */
	while (re < end && *re != ']')
		re++;
	return re < end ? re + 1 : NULL;
}

/* The end of the atom at re; NULL: it has none. */
static const char *skip_atom(const char *re, const char *end)
{
	if (*re == '\\')
		return re + 1 < end ? re + 2 : NULL;
	if (*re == '[')
		return skip_class(re, end);
	if (*re != '(')
		return re + 1;
	for (re++; re && re < end && *re != ')';)
		re = skip_atom(re, end);
	return re && re < end ? re + 1 : NULL;
}

static bool in_class(const char *re, const char *end, unsigned char c)
{
	bool negated = re[1] == '^', found = false;

	end--; /* the closing bracket */
	for (re += 1 + negated; re < end; re++) {
		unsigned char low = (unsigned char)*re, high = low;

		if (re + 2 < end && re[1] == '-') {
			high = (unsigned char)re[2];
			re += 2;
		}
		found |= low <= c && c <= high;
	}
	return found != negated;
}

/* True: the one-character atom matches at `text`. */
static bool one(const char *atom, const char *end, const char *text)
{
	if (!*text)
		return false;
	switch (*atom) {
	case '.':
		return true;
	case '[':
		return in_class(atom, end, (unsigned char)*text);
	case '\\':
		return atom[1] == *text;
	}
	return *atom == *text;
}

static bool sequence(struct matcher *m, const char *re, const char *end, const char *text, const struct then *next);

static bool proceed(struct matcher *m, const char *text, const struct then *then)
{
	if (!then)
		return true;
	if (then->group && text != then->from) {
		struct then again = *then;

		again.from = text;
		if (alternatives(m, then->group, then->group_end, text, &again))
			return true;
	}
	return sequence(m, then->re, then->end, text, then->next);
}

static bool group(struct matcher *m, const char *atom, const char *atom_end, char repeat, const struct then *rest, const char *text)
{
	struct then then = *rest;
	bool loops = repeat == '*' || repeat == '+';

	if (loops) {
		then.group = atom + 1;
		then.group_end = atom_end - 1;
		then.from = text;
	}
	if (alternatives(m, atom + 1, atom_end - 1, text, &then))
		return true;
	return (repeat == '*' || repeat == '?') && sequence(m, rest->re, rest->end, text, rest->next);
}

/* Matches a one-character atom as often as its * + or ? allows, greedily. */
static bool repeated(struct matcher *m, const char *atom, const char *atom_end, char repeat, const struct then *rest,
		     const char *text)
{
	size_t least = repeat == '*' || repeat == '?' ? 0 : 1, most = repeat == '*' || repeat == '+' ? SIZE_MAX : 1;
	size_t count = 0;

	while (count < most && one(atom, atom_end, text + count))
		count++;
	for (;; count--) {
		if (count < least)
			return false;
		if (sequence(m, rest->re, rest->end, text + count, rest->next))
			return true;
		if (!count)
			return false;
	}
}

static bool sequence(struct matcher *m, const char *re, const char *end, const char *text, const struct then *next)
{
	const char *after;
	struct then rest;
	char repeat;
	bool matched;

	if (re == end)
		return proceed(m, text, next);
	if (++m->steps > STEPS || m->depth >= DEPTH || !(after = skip_atom(re, end)))
		return false;
	if (*re == '^')
		return text == m->text && sequence(m, after, end, text, next);
	if (*re == '$')
		return !*text && sequence(m, after, end, text, next);
	repeat = after < end && strchr("*+?", *after) ? *after : 0;
	rest = (struct then){after + (repeat != 0), end, NULL, NULL, NULL, next};
	m->depth++;
	matched = *re == '(' ? group(m, re, after, repeat, &rest, text) : repeated(m, re, after, repeat, &rest, text);
	m->depth--;
	return matched;
}

static bool alternatives(struct matcher *m, const char *re, const char *end, const char *text, const struct then *next)
{
	for (;;) {
		const char *at = re;

		while (at && at < end && *at != '|')
			at = skip_atom(at, end);
		if (!at)
			return false;
		if (sequence(m, re, at, text, next))
			return true;
		if (at == end)
			return false;
		re = at + 1;
	}
}

bool sl_filter_regex_valid(const char *regex)
{
	const char *end = regex + strlen(regex);
	bool repeatable = false;

	while (regex && regex < end) {
		if (*regex == ')' || (strchr("*+?", *regex) && !repeatable))
			return false;
		repeatable = !strchr("|^*+?", *regex);
		regex = skip_atom(regex, end);
	}
	return regex != NULL;
}

bool sl_filter_matches(const char *regex, const char *text)
{
	struct matcher m = {text, 0, 0};

	if (!sl_filter_regex_valid(regex))
		return false;
	for (;; text++) {
		if (alternatives(&m, regex, regex + strlen(regex), text, NULL))
			return true;
		if (!*text)
			return false;
	}
}
