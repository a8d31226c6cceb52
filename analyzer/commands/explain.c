/* SPDX-License-Identifier: MIT */
/* stormlog-analyze explain [ID] [PATH]: what a verdict means, by which rule it was told, what to change. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/format.h"
#include "analyzer/base/stats.h"
#include "analyzer/base/text_join.h"
#include "analyzer/commands/commands.h"
#include "analyzer/report/found.h"
#include "common/base.h"
#include "common/text.h"

/* What the ids of verdicts and findings mean, from findings.def. */

struct explained {
	enum sl_found id;
	const char *word, *means, *rule;
	struct {
		const char *what, *code;
	} way[3];
	const char *suppress; /* "": it cannot be */
};

static const struct explained explained[] = {
#define FINDING(id, word, means, rule, one, one_code, two, two_code, three, three_code, suppress)                                  \
	{SL_FOUND_##id, word, means, rule, {{one, one_code}, {two, two_code}, {three, three_code}}, suppress},
#include "analyzer/answer/findings.def"
#undef FINDING
};

/* name: an id, or one of before they were joined. NULL: there is none. */
static const struct explained *find_explained(const char *name)
{
	const char *id = sl_found_id(sl_found_by_name(name));

	for (size_t i = 0; i < SL_COUNT(explained); i++)
		if (!strcmp(sl_found_id(explained[i].id), id))
			return &explained[i];
	return NULL;
}

static const char about[] =
	"The meaning of a verdict, its rule, three ways to change the program, and how to suppress it.  ID is that "
	"of report.json, as leak.growing; all: every one, as doc/findings.md.  With PATH: the figures of that run; without ID, of "
	"its "
	"first verdict.";

#define INTO struct sl_pipeline_options
static const struct sl_option table[] = {
	SL_OPTION_RUN(run),
	SL_OPTION_SYMBOLS,
	{0},
};

static void put_code(const char *code)
{
	while (*code) {
		size_t size = strcspn(code, "\n");

		sl_escape_print(stdout, "       %.*s\n", (int)size, code);
		code += size + (code[size] != 0);
	}
}

#define IDS_SIZE 256

/* The id, and what it stands for. */
static const char *put_ids(char out[IDS_SIZE], enum sl_found id)
{
	struct sl_text_join ids = sl_text_join_begin(out, IDS_SIZE);

	sl_text_join_add_text(&ids, sl_found_name(id));
	for (unsigned i = 1; i < SL_FOUND_COUNT; i++)
		if (i != id && sl_found_id(i) == sl_found_name(id)) {
			sl_text_join_add_text(&ids, " ");
			sl_text_join_add_text(&ids, sl_found_name(i));
		}
	sl_text_join_end(&ids);
	return out;
}

/* Markdown that reads as it is. */
static void put_rest(const struct explained *e, const struct sl_terminal *to)
{
	putchar('\n');
	sl_terminal_line(to, 0, 0, "Rule: %s", e->rule);
	for (unsigned i = 0; i < SL_COUNT(e->way); i++) {
		sl_escape_print(stdout, "\n%u. ", i + 1);
		sl_terminal_line(to, 3, 3, "%s", e->way[i].what);
		putchar('\n');
		put_code(e->way[i].code);
	}
	if (*e->suppress) {
		putchar('\n');
		sl_terminal_line(to, 0, 0, "Suppress: %s.", e->suppress);
	}
}

/* A section of doc/findings.md. */
static void put_section(const struct explained *e, const struct sl_terminal *to)
{
	fputs("## ", stdout);
	sl_terminal_line(to, 3, 3, "%s", put_ids((char[IDS_SIZE]){0}, e->id));
	putchar('\n');
	sl_terminal_line(to, 0, 0, "%s. %s", e->word, e->means);
	put_rest(e, to);
}

/* The same for a reader who asked for one verdict: its word first, its ids last. */
static void put_one(const struct explained *e, const struct sl_terminal *to)
{
	sl_terminal_head(to, SL_COLOUR_NONE, e->word, "%s", e->means);
	put_rest(e, to);
	putchar('\n');
	sl_terminal_line(to, 0, 5, "Ids: %s", put_ids((char[IDS_SIZE]){0}, e->id));
}

#define NUMBER_SIZE 80

/* "160 MiB", "117 blocks", "6.7 times the largest before" */
static void put_number(char out[NUMBER_SIZE], double value, const char *unit)
{
	if (!strcmp(unit, "bytes"))
		snprintf(out, NUMBER_SIZE, "%s", SL_ANSWER_SIZE(sl_stats_bytes(value)));
	else if (!strcmp(unit, "seconds"))
		snprintf(out, NUMBER_SIZE, "%s", SL_SPAN((uint64_t)(value * 1e9)));
	else if (value >= 100)
		snprintf(out, NUMBER_SIZE, "%s %s", SL_NUMBER((uint64_t)(value + 0.5)), unit);
	else
		snprintf(out, NUMBER_SIZE, "%.3g%s%s", value, *unit ? " " : "", unit);
	for (char *at = out; (at = strchr(at, '_'));)
		*at = ' ';
}

/* The verdict of this run, with the figures by which it was told. */
static void put_run(const struct sl_answer *answer, const struct sl_terminal *to)
{
	static const enum sl_colour colours[] = {
		[SL_TONE_BAD] = SL_COLOUR_RED, [SL_TONE_WARNING] = SL_COLOUR_YELLOW, [SL_TONE_GOOD] = SL_COLOUR_GREEN};
	static const enum sl_said_as labels[] = {SL_LABEL_WHY, SL_LABEL_FIX, SL_LABEL_TRIED, SL_LABEL_NEED};

	sl_terminal_head(to, colours[sl_answer_tone(answer->word)], sl_answer_word(answer->word), "%s", answer->headline);
	for (size_t l = 0; l < SL_COUNT(labels); l++)
		for (size_t i = 0; i < answer->label[labels[l]].count; i++) {
			const char *text = answer->label[labels[l]].item[i];

			sl_terminal_line(to, 0, 9, "  %-6s %s", i ? "" : sl_answer_label(labels[l]), text + (*text == '\n'));
		}
	for (size_t i = 0; i < answer->figure.count; i++) {
		const struct sl_answer_figure *f = &answer->figure.item[i];
		char value[NUMBER_SIZE], limit[NUMBER_SIZE];

		put_number(value, f->value, f->unit);
		put_number(limit, f->limit, "");
		sl_terminal_line(to, 0, 9, "  %-6s %s %s%s%s%s%s", i ? "" : "number", f->name, value, f->rule ? "; the rule: " : "",
				 f->rule ?: "", f->rule ? " " : "", f->rule ? limit : "");
	}
}

static int explain_run(const char *id, const struct sl_arguments *parsed, unsigned first, struct sl_pipeline_options *options)
{
	struct sl_terminal to = sl_terminal_here();
	struct sl_report report = {0};
	const struct sl_answers *answers;
	const struct explained *e = NULL;
	int status = sl_native_open(&report, parsed->paths + first, parsed->path_count - first, options);

	if (status == SL_EXIT_FINE) {
		answers = sl_answer_report(&report);
		for (size_t i = 0; i < answers->item.count && !e; i++)
			if (!id || find_explained(id) == find_explained(answers->item.item[i]->id)) {
				e = find_explained(answers->item.item[i]->id);
				put_run(answers->item.item[i], &to);
			}
		if (id && !e)
			sl_terminal_line(&to, 0, 0, "This run has no verdict %s.", id);
		if (e || id)
			putchar('\n'), put_one(e ?: find_explained(id), &to);
	}
	sl_report_free(&report);
	return status;
}

static int list(bool whole)
{
	struct sl_terminal to = sl_terminal_here();
	struct sl_cells cells = {.columns = "lw"};

	for (size_t i = 0; i < SL_COUNT(explained); i++)
		if (whole) {
			if (i)
				putchar('\n');
			put_section(&explained[i], &to);
		} else {
			sl_cells_put(&cells, SL_COLOUR_NONE, "%s", explained[i].word);
			sl_cells_put(&cells, SL_COLOUR_NONE, "%s", put_ids((char[IDS_SIZE]){0}, explained[i].id));
		}
	sl_cells_print(&cells, &to, 0);
	return SL_EXIT_FINE;
}

static int refuse_id(const char *word)
{
	struct sl_nearest nearest = {.wanted = word, .distance = SL_NEAREST_TYPO};

	for (size_t i = 0; i < SL_COUNT(explained); i++)
		sl_nearest_consider(&nearest, sl_found_id(explained[i].id));
	if (nearest.name)
		return sl_command_fail(SL_EXIT_USAGE, "%s is no id of a verdict, nor a path; did you mean %s?", word, nearest.name);
	return sl_command_fail(SL_EXIT_USAGE, "%s is no id of a verdict, nor a path; stormlog-analyze explain lists the ids", word);
}

static int run(struct sl_arguments *parsed)
{
	struct sl_pipeline_options options = {.quiet = true};
	struct sl_terminal to = sl_terminal_here();
	int status = sl_arguments_parse(parsed, NULL, &options);
	const struct explained *e;

	if (status >= 0)
		return status;
	if (!parsed->path_count || (parsed->path_count == 1 && !strcmp(parsed->paths[0], "all")))
		return list(parsed->path_count);
	e = find_explained(parsed->paths[0]);
	if (!e && access(parsed->paths[0], F_OK))
		return refuse_id(parsed->paths[0]);
	if (e && parsed->path_count == 1) {
		put_one(e, &to);
		return SL_EXIT_FINE;
	}
	sl_sandbox_setup(&(struct sl_verb_files){.inputs = parsed->paths + (e != NULL), .symbols = parsed->symbols});
	return explain_run(e ? parsed->paths[0] : NULL, parsed, e != NULL, &options);
}

const struct sl_command sl_command_explain = {"explain",
					      "the meaning of a verdict, its rule, and changes that help",
					      "explain [ID|all] [PATH...]",
					      about,
					      table,
					      run,
					      SL_PATHS_OPTIONAL};
