/* SPDX-License-Identifier: MIT */
#include "analyzer/catalogue/catalogue.h"

#include <stdarg.h>
#include <strings.h>
#include <time.h>

#include "common/text.h"

const char sl_query_help[] =
	"A query is terms with and, or, not and parentheses; terms side by side are joined by and.\n"
	"  WORD, \"TEXT\", WORD*       anywhere: project, command, labels, functions, files, libraries\n"
	"  label:, function:, file:, library:, place:TEXT   there; = for the whole of it\n"
	"  meta:KEY=VALUE            metadata of the run\n"
	"  project:x, branch=main    fields of text: : contains the words, =, != is the whole\n"
	"  peak>40GiB, oom>=1        fields of sizes and counts: = != < <= > >=\n"
	"  when>-7d, when:2026-11    fields of time: a date, a date and \"2026-11-21 10:30\", or -N s m h d w ago\n"
	"  commit:3f2a, run:, identity:   the text that they begin with\n"
	"  session:ID, rank:N        a run that has it;  FIELD=? is not known";

struct parser {
	struct sl_query *query;
	const char *text, *at;
	int64_t now_ns;
	unsigned depth;
	struct sl_query_error *error;
	bool failed;
};

static void fail(struct parser *p, const char *at, const char *format, ...) SL_PRINTF(3, 4);

static void fail(struct parser *p, const char *at, const char *format, ...)
{
	va_list args;

	if (p->failed)
		return;
	p->failed = true;
	p->error->column = 1;
	for (const char *c = p->text; c < at; p->error->column++)
		sl_utf8_next(&c);
	va_start(args, format);
	vsnprintf(p->error->reason, sizeof(p->error->reason), format, args);
	va_end(args);
}

static int add(struct parser *p, struct sl_query_node node)
{
	struct sl_query *query = p->query;

	if (query->count == SL_QUERY_NODES) {
		fail(p, p->at, "too many terms: a query has at most %d", SL_QUERY_NODES / 2);
		return 0;
	}
	query->nodes[query->count] = node;
	return query->count++;
}

static void skip_blanks(struct parser *p)
{
	p->at += strspn(p->at, " \t\n\r");
}

/* True: this word is here and ends here; it is taken. */
static bool take_word(struct parser *p, const char *word)
{
	size_t size = strlen(word);

	skip_blanks(p);
	if (strncasecmp(p->at, word, size) != 0 || (p->at[size] && !strchr(" \t\n\r()", p->at[size])))
		return false;
	p->at += size;
	return true;
}

/* ---- values */

struct value {
	const char *text, *at; /* at: where it begins in the query */
	bool quoted, begins;
};

static struct value take_value(struct parser *p)
{
	struct value value = {.at = p->at};
	size_t size;

	if (*p->at == '"') {
		size = strcspn(p->at + 1, "\"");
		if (!p->at[1 + size])
			fail(p, p->at, "a quotation mark that is not closed");
		value.quoted = true;
		value.text = sl_arena_strndup(&p->query->arena, p->at + 1, size);
		p->at += size + 1 + (p->at[size + 1] == '"');
	} else {
		size = strcspn(p->at, " \t\n\r()\"");
		value.text = sl_arena_strndup(&p->query->arena, p->at, size);
		p->at += size;
	}
	if (*p->at == '*') { /* follows a quoted text */
		value.begins = true;
		p->at++;
	} else if (!value.quoted && size && value.text[size - 1] == '*') {
		value.begins = true;
		((char *)value.text)[size - 1] = 0;
	}
	if (!p->failed && !*value.text)
		fail(p, value.at, "a value is missing");
	return value;
}

/* The instant at which a year, month, day, minute or second begins, and at which the next one begins. */
static bool date_span(const char *text, int64_t *min, int64_t *max)
{
	static const char *const forms[] = {
		"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%Y-%m", "%Y"};
	static const enum { SECOND, MINUTE, DAY, MONTH, YEAR } units[] = {SECOND, SECOND, MINUTE, MINUTE, DAY, MONTH, YEAR};

	for (size_t i = 0; i < SL_COUNT(forms); i++) {
		struct tm tm = {.tm_mday = 1, .tm_isdst = -1}, next;
		const char *end = strptime(text, forms[i], &tm);
		bool utc = end && *end == 'Z' && !end[1];
		int day = tm.tm_mday;
		time_t from, to;

		if (!end || (*end && !utc) || tm.tm_year < 70 || tm.tm_year > 300)
			continue;
		next = tm;
		*(units[i] == SECOND   ? &next.tm_sec
		  : units[i] == MINUTE ? &next.tm_min
		  : units[i] == DAY    ? &next.tm_mday
		  : units[i] == MONTH  ? &next.tm_mon
				       : &next.tm_year) += 1;
		next.tm_isdst = tm.tm_isdst = -1;
		from = utc ? timegm(&tm) : mktime(&tm);
		to = utc ? timegm(&next) : mktime(&next);
		if (tm.tm_mday != day) /* the 31st of February */
			return false;
		*min = (int64_t)from * 1000000000;
		*max = (int64_t)to * 1000000000 - 1;
		return true;
	}
	return false;
}

/* -90m: that long ago */
static bool ago(const char *text, int64_t now_ns, int64_t *time_ns)
{
	static const char units[] = "smhdw";
	static const int64_t seconds[] = {1, 60, 3600, 86400, 604800};
	char *end;
	unsigned long count = *text == '-' && text[1] >= '0' && text[1] <= '9' ? strtoul(text + 1, &end, 10) : 0;
	const char *unit = *text == '-' && text[1] >= '0' && text[1] <= '9' && *end && !end[1] ? strchr(units, *end) : NULL;

	if (!unit || count > 100000)
		return false;
	*time_ns = now_ns - (int64_t)count * seconds[unit - units] * 1000000000;
	return true;
}

static bool number_span(struct parser *p, const struct sl_card_field *field, const struct value *value, int64_t *min, int64_t *max)
{
	uint64_t bytes = 0;
	char *end;

	if (field->type == SL_CARD_TIME) {
		if (date_span(value->text, min, max))
			return true;
		if (ago(value->text, p->now_ns, min)) {
			*max = *min;
			return true;
		}
		fail(p, value->at, "\"%.40s\" is no time: 2026-11-21, \"2026-11-21 10:30\", or -7d", value->text);
		return false;
	}
	if (field->type == SL_CARD_BYTES && sl_size_parse(value->text, &bytes) && bytes <= INT64_MAX) {
		*min = *max = (int64_t)bytes;
		return true;
	}
	if (field->type == SL_CARD_COUNT && strspn(value->text, "0123456789") == strlen(value->text) && strlen(value->text) < 19) {
		*min = *max = strtoll(value->text, &end, 10);
		return true;
	}
	fail(p, value->at, field->type == SL_CARD_BYTES ? "\"%.40s\" is no size: 40GiB, 512M" : "\"%.40s\" is no number",
	     value->text);
	return false;
}

/* ---- terms */

enum relation { CONTAINS, EQUAL, UNEQUAL, LESS, LESS_OR_EQUAL, MORE, MORE_OR_EQUAL };
static const struct {
	const char *text;
	enum relation relation;
} relations[] = {{"!=", UNEQUAL}, {"<=", LESS_OR_EQUAL}, {">=", MORE_OR_EQUAL}, {":", CONTAINS}, {"=", EQUAL}, {"<", LESS},
		 {">", MORE}};

static int negate(struct parser *p, int node)
{
	return add(p, (struct sl_query_node){.op = SL_QUERY_NOT, .left = node});
}

static int number_term(struct parser *p, int field, enum relation relation, const struct value *value)
{
	struct sl_query_node node = {.op = SL_QUERY_EQUAL, .field = field, .min = INT64_MIN, .max = INT64_MAX};
	int64_t min, max;

	if (!number_span(p, &sl_card_fields[field], value, &min, &max))
		return 0;
	if (relation == LESS)
		node.max = min - 1;
	else if (relation == LESS_OR_EQUAL)
		node.max = max;
	else if (relation == MORE)
		node.min = max + 1;
	else
		node.min = min;
	if (relation == CONTAINS || relation == EQUAL || relation == UNEQUAL)
		node.max = max;
	return relation == UNEQUAL ? negate(p, add(p, node)) : add(p, node);
}

static int text_term(struct parser *p, int field, enum relation relation, const struct value *value)
{
	const struct sl_card_field *f = &sl_card_fields[field];
	struct sl_query_node node = {.field = field, .name = SL_NAME_CARD + field, .text = value->text, .begins = value->begins};

	if (relation > UNEQUAL) {
		fail(p, value->at, "%s is a text: %s:..., %s=... or %s!=...", f->name, f->name, f->name, f->name);
		return 0;
	}
	node.op = relation == CONTAINS ? (f->type == SL_CARD_ID ? SL_QUERY_BEGINS : SL_QUERY_WORDS)
		  : value->begins      ? SL_QUERY_BEGINS
				       : SL_QUERY_EQUAL;
	return relation == UNEQUAL ? negate(p, add(p, node)) : add(p, node);
}

static int name_term(struct parser *p, int kind, enum relation relation, const struct value *value)
{
	struct sl_query_node node = {.name = kind, .text = value->text, .begins = value->begins};

	if (relation > UNEQUAL) {
		fail(p, value->at, "%s is a text: %s:..., %s=... or %s!=...", sl_name_kinds[kind], sl_name_kinds[kind],
		     sl_name_kinds[kind], sl_name_kinds[kind]);
		return 0;
	}
	node.op = relation == CONTAINS || value->begins ? SL_QUERY_WORDS : SL_QUERY_NAMED;
	return relation == UNEQUAL ? negate(p, add(p, node)) : add(p, node);
}

static const char *const session_fields[] = {"session", "rank", "bundle"};

static int session_term(struct parser *p, unsigned which, enum relation relation, const struct value *value)
{
	struct sl_query_node node = {.op = SL_QUERY_SESSION, .session = (enum sl_query_session)which, .text = value->text};
	char *end;

	if (relation > UNEQUAL)
		fail(p, value->at, "%s can only be compared with : or =", session_fields[which]);
	node.min = strtol(value->text, &end, 10);
	if (which != SL_QUERY_SESSION_ID && (*end || node.min < 0))
		fail(p, value->at, "\"%.40s\" is no number", value->text);
	return relation == UNEQUAL ? negate(p, add(p, node)) : add(p, node);
}

static int find(const char *const *names, unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return (int)i;
	return -1;
}

static void no_field(struct parser *p, const char *at, const char *name)
{
	struct sl_nearest nearest = {.wanted = name, .distance = SL_NEAREST_TYPO};

	for (unsigned i = 0; i < sl_card_field_count; i++)
		sl_nearest_consider(&nearest, sl_card_fields[i].name);
	for (unsigned i = 0; i < SL_NAME_KIND_COUNT; i++)
		sl_nearest_consider(&nearest, sl_name_kinds[i]);
	if (nearest.name)
		fail(p, at, "%.40s is no field; did you mean %s?", name, nearest.name);
	else
		fail(p, at, "%.40s is no field (as a text: \"%.40s...\")", name, name);
}

static int field_term(struct parser *p, const char *name, const char *at, enum relation relation)
{
	int field = sl_card_field(name), kind = find(sl_name_kinds, SL_NAME_KIND_COUNT, name),
	    session = find(session_fields, SL_COUNT(session_fields), name);
	struct value value;

	if (field < 0 && kind < 0 && session < 0) {
		no_field(p, at, name);
		return 0;
	}
	value = take_value(p);
	if (p->failed)
		return 0;
	if (field >= 0 && !value.quoted && !strcmp(value.text, "?") && relation <= UNEQUAL) {
		int node = add(p, (struct sl_query_node){.op = SL_QUERY_UNKNOWN, .field = field});

		return relation == UNEQUAL ? negate(p, node) : node;
	}
	if (session >= 0)
		return session_term(p, (unsigned)session, relation, &value);
	if (kind >= 0)
		return name_term(p, kind, relation, &value);
	return sl_card_is_text(&sl_card_fields[field]) ? text_term(p, field, relation, &value)
						       : number_term(p, field, relation, &value);
}

static int term(struct parser *p)
{
	const char *at = p->at, *name;
	size_t size = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
	struct value value;

	for (size_t i = 0; size && i < SL_COUNT(relations); i++)
		if (!strncmp(at + size, relations[i].text, strlen(relations[i].text))) {
			name = sl_utf8_lower(&p->query->arena, sl_arena_strndup(&p->query->arena, at, size));
			p->at += size + strlen(relations[i].text);
			return field_term(p, name, at, relations[i].relation);
		}
	value = take_value(p);
	return add(p, (struct sl_query_node){.op = SL_QUERY_WORDS, .name = -1, .text = value.text, .begins = value.begins});
}

/* ---- and, or, not */

static int any(struct parser *p);

static int in_parentheses(struct parser *p)
{
	const char *opened = p->at++;
	int node = any(p);

	skip_blanks(p);
	if (*p->at != ')')
		fail(p, opened, "a parenthesis that is not closed");
	p->at += *p->at == ')';
	return node;
}

/* True: `word` is here; it is not taken. */
static bool sees_word(struct parser *p, const char *word)
{
	const char *at = p->at;
	bool seen = take_word(p, word);

	p->at = at;
	return seen;
}

static int one(struct parser *p)
{
	int node = 0;

	skip_blanks(p);
	if (++p->depth > SL_QUERY_DEPTH)
		fail(p, p->at, "too deep: parentheses and nots go to %d", SL_QUERY_DEPTH);
	else if (!*p->at || *p->at == ')' || sees_word(p, "and") || sees_word(p, "or"))
		fail(p, p->at, "a term is missing");
	else if (*p->at == '-' && !strchr(" \t\n\r", p->at[1]))
		p->at++, node = negate(p, one(p));
	else if (take_word(p, "not"))
		node = negate(p, one(p));
	else if (*p->at == '(')
		node = in_parentheses(p);
	else
		node = term(p);
	p->depth--;
	return node;
}

static int all(struct parser *p)
{
	int node = one(p);

	for (skip_blanks(p); !p->failed && *p->at && *p->at != ')' && !sees_word(p, "or"); skip_blanks(p)) {
		int right;

		take_word(p, "and");
		right = one(p);
		node = add(p, (struct sl_query_node){.op = SL_QUERY_AND, .left = node, .right = right});
	}
	return node;
}

static int any(struct parser *p)
{
	int node = all(p);

	while (!p->failed && take_word(p, "or")) {
		int right = all(p);

		node = add(p, (struct sl_query_node){.op = SL_QUERY_OR, .left = node, .right = right});
	}
	return node;
}

bool sl_query_parse(struct sl_query *query, const char *text, int64_t now_ns, struct sl_query_error *error)
{
	struct parser p = {.query = query, .text = text, .at = text, .now_ns = now_ns, .error = error};

	*query = (struct sl_query){0};
	if (strlen(text) > SL_QUERY_BYTES) {
		fail(&p, text, "longer than %d bytes", SL_QUERY_BYTES);
		return false;
	}
	if (sl_utf8_is_blank(text))
		return true;
	query->root = any(&p);
	if (!p.failed && *p.at)
		fail(&p, p.at, "a parenthesis that was not opened");
	return !p.failed;
}

void sl_query_free(struct sl_query *query)
{
	sl_arena_free(&query->arena);
	query->count = 0;
}
