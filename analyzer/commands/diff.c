/* SPDX-License-Identifier: MIT */
/* stormlog-analyze diff A B: compare one run, or several, with others. */
#include <inttypes.h>
#include <math.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "analyzer/base/stats.h"
#include "analyzer/base/text_join.h"
#include "analyzer/commands/commands.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/missing.h"

static int by_size(const void *a, const void *b, void *terms)
{
	const double *all = terms;
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return SL_FALLING(fabs(all[x]), fabs(all[y])) ?: SL_RISING(x, y);
}

/* Their numbers, largest change first. */
static void sort(unsigned order[SL_BECAUSE_TERMS], const struct sl_because *because)
{
	for (unsigned t = 0; t < SL_BECAUSE_TERMS; t++)
		order[t] = t;
	qsort_r(order, SL_BECAUSE_TERMS, sizeof(*order), by_size, (void *)because->terms);
}

static void put_row(struct sl_cells *table, unsigned level, double change, const char *what, double before, double after)
{
	sl_cells_put(table, SL_COLOUR_NONE, "%*s%c%s", (int)level * 2, "", change < 0 ? '-' : '+',
		     SL_SIZE(sl_stats_bytes(fabs(change))));
	sl_cells_put(table, SL_COLOUR_NONE, "%s", what);
	if (before < 0)
		sl_cells_put(table, SL_COLOUR_NONE, "%s", "");
	else
		sl_cells_put(table, SL_COLOUR_NONE, "%s -> %s", SL_SIZE(sl_stats_bytes(before)), SL_SIZE(sl_stats_bytes(after)));
}

static void put_lines(struct sl_cells *table, const struct sl_because *because, unsigned rows)
{
	unsigned shown = 0, more = 0;

	for (size_t i = 0; i < because->lines.list.count; i++) {
		const struct sl_difference *d = &because->lines.list.item[i];

		if (d->bytes != 0 && shown++ < rows)
			put_row(table, 2, d->bytes, d->what, d->before.mean, d->after.mean);
		else
			more += d->bytes != 0;
	}
	if (more)
		sl_cells_under(table, "and %u more lines: --all or --json", more);
}

/* Terms that changed, largest first, and the lines under the requests: at most `rows` of them. */
static void print_because(const struct sl_because *because, unsigned rows, bool windows, const struct sl_terminal *to)
{
	const struct sl_because_parts *is = because->replayed ? &because->after->own : because->is;
	double change = (double)is->bytes - (double)because->was->bytes;
	struct sl_cells table = {.columns = "lwl"};
	unsigned order[SL_BECAUSE_TERMS];
	char text[600];

	if (change == 0)
		return;
	sort(order, because);
	putchar('\n');
	sl_terminal_line(to, 0, 5, "BECAUSE, at the peak of %s",
			 windows ? "what was reserved" : "the process and device that held most");
	put_row(&table, 0, change, "in all", (double)because->was->bytes, (double)is->bytes);
	for (unsigned i = 0; i < SL_BECAUSE_TERMS && because->terms[order[i]] != 0; i++) {
		unsigned t = order[i];

		put_row(&table, 1, because->terms[t], sl_because_text(text, sizeof(text), because, t),
			t == SL_BECAUSE_SETTINGS ? -1 : (double)because->was->terms[t], (double)because->is->terms[t]);
		if (t == SL_BECAUSE_REQUESTS)
			put_lines(&table, because, rows);
	}
	if (!because->replayed && (because->before->settings || because->after->settings))
		sl_cells_under(&table, "no replay tells cache from fragments: %s",
			       because->before->replays ? because->after->why : because->before->why);
	sl_cells_print(&table, to, 2);
}

static void put_term(struct sl_json *j, const struct sl_because *because, unsigned t)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "term", sl_because_names[t]);
	sl_json_double(j, "change_bytes", because->terms[t]);
	sl_json_known_uint(j, "before_bytes", t == SL_BECAUSE_SETTINGS ? SL_UNKNOWN : because->was->terms[t]);
	sl_json_known_uint(j, "after_bytes", t == SL_BECAUSE_SETTINGS ? SL_UNKNOWN : because->is->terms[t]);
	sl_json_array(j, "lines");
	for (size_t i = 0; t == SL_BECAUSE_REQUESTS && i < because->lines.list.count; i++) {
		const struct sl_difference *d = &because->lines.list.item[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "what", d->what);
		sl_json_double(j, "change_bytes", d->bytes);
		sl_json_uint(j, "before_bytes", sl_stats_bytes(d->before.mean));
		sl_json_uint(j, "after_bytes", sl_stats_bytes(d->after.mean));
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_end(j);
}

static void put_run(struct sl_json *j, const char *key, const struct sl_because_run *run, uint64_t bytes)
{
	char release[24];

	snprintf(release, sizeof(release), "%u.%u", run->release / 100, run->release % 100);
	sl_json_object(j, key);
	sl_json_string(j, "process", run->who);
	sl_json_uint(j, "peak_bytes", bytes);
	sl_json_string(j, "torch", run->release ? release : NULL);
	sl_json_string(j, "settings", run->settings);
	sl_json_string(j, "no_replay", run->replays ? NULL : run->why);
	sl_json_end(j);
}

/* The member "because"; because NULL: null. */
static void because_json(struct sl_json *j, const struct sl_because *because)
{
	unsigned order[SL_BECAUSE_TERMS];

	if (!because) {
		sl_json_null(j, "because");
		return;
	}
	sort(order, because);
	sl_json_object(j, "because");
	sl_json_bool(j, "replayed", because->replayed);
	put_run(j, "before", because->before, because->was->bytes);
	put_run(j, "after", because->after, because->replayed ? because->after->own.bytes : because->is->bytes);
	sl_json_array(j, "terms");
	for (unsigned i = 0; i < SL_BECAUSE_TERMS; i++)
		put_term(j, because, order[i]);
	sl_json_end(j);
	sl_json_end(j);
}

#define SHOWN 12 /* rows of each section, unless --all */
#define LINES 8	 /* the same of lines in the terms of a peak */

static const char about[] =
	"A side may have several runs, with -- between: diff A1 A2 A3 -- B1 B2 B3.  A change inside their spread is noise.\n"
	"A side that is no path is a query over the catalogue (`runs --help`): it chooses the newest runs that match.\n"
	"Places are those of check's baseline.  Peak and hidden are of the device with most, all its recorded processes\n"
	"together; every other number is of the process with most.  --collapsed and --html add up processes.";

/* Stacks of both sides, compared without line numbers. */
struct stack {
	const char *text; /* of the index */
	double bytes[2];
};

/* A part that a run lacks; of one that a query found only lost events are known. */
struct missing {
	unsigned side;
	bool damaged;
	const char *path;
	char *subject, *what;
};

static const char *const side_names[] = {"before", "after"};

struct comparison {
	struct sl_side sides[2];
	struct sl_side_names names[2];	 /* paths, and ids of runs that a query found */
	struct sl_catalogued catalogued; /* opened where a side is a query */
	long newest;
	struct sl_map index;
	SL_VECTOR(struct stack) stacks;
	SL_VECTOR(struct missing) missing;
	struct sl_because_run runs[2]; /* where each side is one run that was read */
	struct sl_because because;
	struct sl_html_changes *page;
	const char *collapsed, *html;
	uint64_t html_max_bytes;
	bool json, all, explained; /* explained: `because` is filled */
};

#define INTO struct comparison
static const struct sl_option table[] = {
	{"--json", 0, NULL, "print the differences as JSON", SL_TO_FLAG(json)},
	{"--collapsed", 0, "FILE", "differential stacks at the peak, for difffolded and flame graph tools: stack, before, after",
	 SL_TO_TEXT(collapsed)},
	{"--html", 0, "FILE", "write a page that opens without a network: changes, and the stacks that grew and shrank",
	 SL_TO_TEXT(html)},
	{"--html-max-bytes", 0, "SIZE", "largest size of the page (default: 8M); it says what was left out",
	 SL_TO_SIZE(html_max_bytes)},
	{"--all", 0, NULL, "print what did not change too, and every row", SL_TO_FLAG(all)},
	{"--newest", 0, "N", "how many runs a query chooses (default: 5)", SL_TO_LONG(newest, 1, 1000)},
	{"--catalogue", 0, "FILE", "where queries look, as for `runs`", SL_TO_TEXT(catalogued.catalogue)},
	SL_OPTION_SYMBOLS,
	{0},
};

#define STACK_BYTES 16384 /* of a stack's text */

static void add_frame(struct sl_text_join *line, const struct sl_stack_frame *frame)
{
	struct sl_stack_frame bare = *frame; /* without its line */
	char text[600];

	bare.line = 0;
	if (frame->python)
		bare.module = sl_paths_name(frame->file);
	if (frame->function)
		sl_stacks_describe(text, sizeof(text), &bare);
	else
		snprintf(text, sizeof(text), "%s", bare.module ? bare.module : "?");
	for (char *at = text; *at; at++)
		if (*at == ';' || (unsigned char)*at < 0x20)
			*at = '?';
	sl_text_join_add_text(line, ";");
	sl_text_join_add_text(line, text);
}

/* The library and the frames, the outermost first. */
static void put_stack(char text[STACK_BYTES], struct sl_process *process, const struct sl_site *site)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	struct sl_text_join line = sl_text_join_begin(text, STACK_BYTES);

	sl_text_join_add_text(&line, sl_model_library(process->model, site));
	for (unsigned f = sl_process_stack(process, frames, site->stack); f--;)
		add_frame(&line, &frames[f]);
	sl_text_join_end(&line);
}

static void add_stacks(struct comparison *c, struct sl_process *process, unsigned side, double share)
{
	char text[STACK_BYTES];
	uint64_t bytes;

	for (const struct sl_site *site = NULL; (site = sl_owners_next(process, SL_DEVICE_ANY, SL_WEIGH_PEAK, site, &bytes));) {
		uintptr_t *at;

		put_stack(text, process, site);
		at = sl_map_at(&c->index, text);
		if (!*at) {
			SL_ROOM(&c->stacks);
			*at = ++c->stacks.count;
			c->stacks.item[*at - 1] = (struct stack){.text = sl_map_intern(&c->index, text)};
		}
		c->stacks.item[*at - 1].bytes[side] += (double)bytes * share;
	}
}

struct telling {
	struct comparison *c;
	unsigned side;
	const char *path;
};

static void add_missing(void *context, bool damaged, const char *subject, const char *message)
{
	const struct telling *t = context;

	*SL_PUSH(&t->c->missing) = (struct missing){t->side, damaged, t->path, sl_memory_copy(subject), sl_memory_copy(message)};
}

struct runs {
	SL_VECTOR(int64_t) list;
};

static bool add(void *context, const struct sl_card *card)
{
	struct runs *runs = context;

	*SL_PUSH(&runs->list) = card->run;
	return true;
}

static bool take(struct comparison *c, int64_t run, unsigned side)
{
	struct sl_card card;
	bool fine;

	sl_card_init(&card);
	fine = sl_store_card(c->catalogued.store, run, &card);
	if (fine) {
		char what[80], *name = strdup(card.run_id ? card.run_id : card.identity);

		sl_card_measures(&card, SL_PUSH(&c->sides[side].runs));
		*SL_PUSH(&c->names[side].list) = name;
		if (card.lost > 0) {
			snprintf(what, sizeof(what), "%" PRId64 " were lost, so less is known than happened", card.lost);
			add_missing(&(struct telling){c, side, name}, true, "events", what);
		}
		if (card.left_out)
			sl_escape_print(
				stderr,
				"stormlog-analyze: run %s has more places than its card holds: the smallest are not compared\n",
				card.run_id);
	}
	sl_card_free(&card);
	return fine;
}

/* Adds the runs to the side.  An exit status after printing why, or -1: go on.  The catalogue is open. */
static int side_query(struct comparison *c, const char *text, unsigned side)
{
	struct sl_store_ask ask = {.query = &c->catalogued.query, .order = -1, .limit = c->newest};
	struct runs runs = {0};
	int status = sl_catalogued_query(&c->catalogued, text);
	bool fine = status < 0 && sl_store_runs(c->catalogued.store, &ask, add, &runs);

	for (size_t i = 0; fine && i < runs.list.count; i++)
		fine = take(c, runs.list.item[i], side);
	if (status < 0 && !fine)
		status = sl_catalogued_fail(&c->catalogued);
	if (status < 0 && !runs.list.count)
		status = sl_command_fail(SL_EXIT_USAGE, "%s: no such path, and no run of %s that answers it", text,
					 c->catalogued.catalogue);
	SL_DROP(&runs.list);
	return status;
}

/* A path stands for one run, a query for several. */
static int take_run(struct comparison *c, char *path, unsigned side, unsigned runs)
{
	struct sl_pipeline_options options = {0};
	struct sl_report report = {0};
	int status;

	if (c->catalogued.store && sl_catalogued_is_query(path)) {
		status = side_query(c, path, side);
		return status < 0 ? SL_EXIT_FINE : status;
	}
	status = sl_native_open(&report, &path, 1, &options);
	*SL_PUSH(&c->names[side].list) = strdup(path);
	if (status == SL_EXIT_FINE) {
		struct sl_side *to = &c->sides[side];

		SL_ROOM(&to->runs);
		sl_measures_take(&to->runs.item[to->runs.count++], &report);
		if (runs == 1)
			sl_because_take(&c->runs[side], &report, side ? &c->runs[0] : NULL);
		sl_missing_tell(&report, add_missing, &(struct telling){c, side, path});
		for (unsigned i = 0; c->collapsed && i < report.process_count; i++)
			add_stacks(c, &report.processes[i], side, 1.0 / runs);
		for (unsigned i = 0; c->html && i < report.process_count; i++)
			sl_html_changes_add(c->page, &report.processes[i], side, 1.0 / runs);
	}
	sl_report_free(&report);
	return status;
}

static const char *spread(char *out, size_t size, const struct sl_spread *s)
{
	if (!s->count)
		snprintf(out, size, "unknown");
	else if (s->min == s->max)
		snprintf(out, size, "%s", SL_SIZE(s->max));
	else
		snprintf(out, size, "%s .. %s", SL_SIZE(s->min), SL_SIZE(s->max));
	return out;
}

static const char *signed_size(char out[SL_FORMAT_BYTES + 2], double bytes)
{
	snprintf(out, SL_FORMAT_BYTES + 2, "%c%s", bytes < 0 ? '-' : '+', SL_SIZE(sl_stats_bytes(fabs(bytes))));
	return out;
}
#define SIGNED(bytes) signed_size((char[SL_FORMAT_BYTES + 2]){0}, bytes)

static const char *words_of(const struct sl_difference *d, bool windows)
{
	return d->of == SL_MEASURE_TOTAL ? sl_measure_word(d->key, windows) : sl_label_words(d->what);
}

static bool is_real(const struct sl_difference *d)
{
	return d->change > SL_CHANGE_UNKNOWN;
}

/* The figures that did not change, on one line. */
static void put_same(const struct comparison *c, const struct sl_differences *differences, bool windows,
		     const struct sl_terminal *to)
{
	char line[600] = "", value[120];
	size_t used = 0;

	for (size_t i = 0; i < differences->list.count; i++) {
		const struct sl_difference *d = &differences->list.item[i];

		if (d->of == SL_MEASURE_TOTAL && !is_real(d) && used < sizeof(line))
			used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s %s%s", used ? ", " : "",
						 words_of(d, windows), spread(value, sizeof(value), &d->after),
						 d->change == SL_CHANGE_NOISE ? " (noise)" : "");
	}
	if (used && !c->all)
		sl_terminal_line(to, 0, 6, "same: %s", line);
}

/* Bytes of the words before the callers of the line. */
static int first_line(const char *words)
{
	const char *callers = strstr(words, " < ");

	return callers ? (int)(callers - words) : 200;
}

/* Tells the peak if it changed, else the largest change.  Two places that made a tenth of it follow, or its largest term. */
static void put_headline(const struct comparison *c, const struct sl_differences *differences, bool windows,
			 const struct sl_terminal *to)
{
	const struct sl_difference *first = NULL, *d;
	char line[700] = "", before[120], after[120], text[600];
	size_t used = 0;
	unsigned places = 0, order[SL_BECAUSE_TERMS];

	for (size_t i = 0; i < differences->list.count; i++) {
		d = &differences->list.item[i];
		if (is_real(d) && (!first || (d->of == SL_MEASURE_TOTAL && !strcmp(d->key, "peak"))))
			first = d;
	}
	if (!first) {
		sl_terminal_head(to, SL_COLOUR_GREEN, "SAME", "nothing changed");
		return;
	}
	for (size_t i = 0; i < differences->list.count; i++) {
		d = &differences->list.item[i];
		if (d->of == SL_MEASURE_STACK && d != first && is_real(d) && fabs(d->bytes) * 10 >= fabs(first->bytes) &&
		    places++ < 2)
			used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%.*s is %s, %s", used ? "; " : ": ",
						 first_line(words_of(d, windows)), words_of(d, windows), sl_change_names[d->change],
						 SIGNED(d->bytes));
	}
	sort(order, &c->because);
	if (!used && c->explained)
		snprintf(line, sizeof(line), ": %s, %s", sl_because_text(text, sizeof(text), &c->because, order[0]),
			 SIGNED(c->because.terms[order[0]]));
	sl_terminal_head(to, first->bytes > 0 ? SL_COLOUR_RED : SL_COLOUR_GREEN, first->bytes > 0 ? "MORE" : "LESS",
			 "%s %s -> %s, %s%s", words_of(first, windows), spread(before, sizeof(before), &first->before),
			 spread(after, sizeof(after), &first->after), SIGNED(first->bytes), line);
}

/* Prints where each side is from, and what of it is not here. */
static void put_sides(const struct comparison *c, const struct sl_terminal *to)
{
	for (unsigned side = 0; side < 2 && c->catalogued.store; side++)
		for (size_t i = 0; i < c->names[side].list.count; i++)
			sl_terminal_line(to, 0, 8, "%-7s %s", i ? "" : side_names[side], c->names[side].list.item[i]);
	for (size_t i = 0; i < c->missing.count && (i < SHOWN || c->all); i++)
		sl_terminal_line(to, 0, 4, "incomplete: %s, %s: %s: %s", side_names[c->missing.item[i].side],
				 c->missing.item[i].path, c->missing.item[i].subject, c->missing.item[i].what);
	if (c->missing.count > SHOWN && !c->all)
		sl_terminal_line(to, 2, 4, "and %zu more that is not here: --all or --json", c->missing.count - SHOWN);
}

/* Prints the rows of one measure from `at` on; returns the first of the next. */
static size_t put_rows(const struct comparison *c, const struct sl_differences *differences, size_t at, bool windows,
		       const struct sl_terminal *to)
{
	const char *const titles[] = {
		"TOTALS",	   "LIBRARIES, at their peak", windows ? "PLACES, at the peak of tensors" : "PLACES, at the peak",
		"LEFT at the end", "LABELS, at their peak",    "GROWTH an entry"};
	struct sl_cells table = {.columns = "lrwl"};
	enum sl_measure_of of = differences->list.item[at].of;
	unsigned shown = 0, more = 0;
	char before[120], after[120];

	for (; at < differences->list.count && differences->list.item[at].of == of; at++) {
		const struct sl_difference *d = &differences->list.item[at];

		if (!is_real(d) && !c->all)
			continue;
		if (!c->all && shown == SHOWN && ++more)
			continue;
		shown++;
		sl_cells_put(&table, d->change == SL_CHANGE_MORE || d->change == SL_CHANGE_NEW ? SL_COLOUR_RED : SL_COLOUR_NONE,
			     "%s", sl_change_names[d->change]);
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", is_real(d) || d->change == SL_CHANGE_NOISE ? SIGNED(d->bytes) : "");
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", words_of(d, windows));
		sl_cells_put(&table, SL_COLOUR_NONE, "%s -> %s", spread(before, sizeof(before), &d->before),
			     spread(after, sizeof(after), &d->after));
	}
	if (shown)
		sl_escape_print(stdout, "\n%s\n", titles[of]);
	if (more)
		sl_cells_under(&table, "and %u more that changed less: --all, --json or --html FILE", more);
	sl_cells_print(&table, to, 2);
	return at;
}

static void put_text(const struct comparison *c, const struct sl_differences *differences)
{
	bool windows = c->sides[0].runs.item[0].of_windows && c->sides[1].runs.item[0].of_windows;
	struct sl_terminal to = sl_terminal_here();

	sl_dry_head(stdout, c->sides[0].runs.item[0].dry_card);
	put_headline(c, differences, windows, &to);
	put_same(c, differences, windows, &to);
	if (c->explained)
		print_because(&c->because, c->all ? UINT_MAX : LINES, windows, &to);
	for (size_t i = 0; i < differences->list.count;)
		i = put_rows(c, differences, i, windows, &to);
	if (c->catalogued.store || c->missing.count)
		putchar('\n');
	put_sides(c, &to);
}

static bool put_json(const struct comparison *c, const struct sl_differences *differences)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);

	sl_json_document(j, "stormlog.diff", 1);
	sl_json_string(j, "dry", c->sides[0].runs.item[0].dry_card);
	sl_json_uint(j, "runs_before", c->sides[0].runs.count);
	sl_json_uint(j, "runs_after", c->sides[1].runs.count);
	for (unsigned side = 0; side < 2; side++) {
		sl_json_array(j, side_names[side]);
		for (size_t i = 0; i < c->names[side].list.count; i++)
			sl_json_string(j, NULL, c->names[side].list.item[i]);
		sl_json_end(j);
	}
	sl_json_array(j, "incomplete");
	for (size_t i = 0; i < c->missing.count; i++) {
		sl_json_object(j, NULL);
		sl_json_string(j, "side", side_names[c->missing.item[i].side]);
		sl_json_string(j, "path", c->missing.item[i].path);
		sl_json_string(j, "subject", c->missing.item[i].subject);
		sl_json_string(j, "what", c->missing.item[i].what);
		sl_json_bool(j, "damaged", c->missing.item[i].damaged);
		sl_json_end(j);
	}
	sl_json_end(j);
	because_json(j, c->explained ? &c->because : NULL);
	sl_json_array(j, "differences");
	for (size_t i = 0; i < differences->list.count; i++)
		sl_difference_write(j, &differences->list.item[i]);
	sl_json_end(j);
	return sl_json_finish(j);
}

static bool put_collapsed(const struct comparison *c)
{
	struct sl_save save;
	bool fine = sl_save_begin(&save, c->collapsed, false), whole;

	for (size_t i = 0; fine && i < c->stacks.count; i++)
		sl_escape_print(save.out, "%s %.0f %.0f\n", c->stacks.item[i].text, c->stacks.item[i].bytes[0],
				c->stacks.item[i].bytes[1]);
	whole = fine && !ferror(save.out);
	fine = fine && sl_save_end(&save, whole);
	if (!fine)
		sl_paths_failed(c->collapsed);
	return fine;
}

static bool put_html(const struct comparison *c, const struct sl_differences *differences, char *const *paths,
		     const unsigned *counts)
{
	uint64_t max_bytes = sl_html_most(c->html_max_bytes);
	struct sl_save save;
	bool fine = sl_save_begin(&save, c->html, false) &&
		    sl_save_end(&save, sl_html_changes_write(c->page, differences, c->explained ? &c->because : NULL, paths, counts,
							     max_bytes, save.out));

	if (!fine)
		sl_paths_failed(c->html);
	return fine;
}

static int compare(struct comparison *c, char **paths, const unsigned *counts)
{
	struct sl_differences differences;
	int status = SL_EXIT_FINE;
	size_t dry_runs = 0, runs = 0;

	if (c->html)
		c->page = sl_html_changes_new();
	for (unsigned i = 0; i < counts[0] + counts[1] && status == SL_EXIT_FINE; i++)
		status = take_run(c, paths[i], i >= counts[0], counts[i >= counts[0]]);
	if (status)
		return status;
	for (unsigned side = 0; side < 2; side++)
		for (size_t i = 0; i < c->sides[side].runs.count; i++, runs++)
			dry_runs += c->sides[side].runs.item[i].dry_card != NULL;
	if (dry_runs && dry_runs < runs)
		return sl_command_fail(SL_EXIT_USAGE,
				       "a dry run and one on a device do not compare: memory outside of the job differs");
	sl_diff(&differences, &c->sides[0], &c->sides[1]);
	c->explained = sl_because(&c->because, &c->runs[0], &c->runs[1]);
	if (c->collapsed && !put_collapsed(c))
		status = SL_EXIT_UNSAVED;
	if (c->html && !put_html(c, &differences, paths, counts))
		status = SL_EXIT_UNSAVED;
	if (c->json)
		status = put_json(c, &differences) ? status : SL_EXIT_UNSAVED;
	else if (!c->collapsed || !sl_save_is_standard(c->collapsed))
		put_text(c, &differences);
	sl_differences_free(&differences);
	if (c->explained)
		sl_because_free(&c->because);
	return fflush(stdout) ? SL_EXIT_UNSAVED : status;
}

static void comparison_free(struct comparison *c)
{
	for (unsigned side = 0; side < 2; side++) {
		for (size_t i = 0; i < c->sides[side].runs.count; i++)
			sl_measures_free(&c->sides[side].runs.item[i]);
		free(c->sides[side].runs.item);
		sl_because_run_free(&c->runs[side]);
		for (size_t i = 0; i < c->names[side].list.count; i++)
			free(c->names[side].list.item[i]);
		SL_DROP(&c->names[side].list);
	}
	sl_catalogued_close(&c->catalogued, SL_EXIT_FINE);
	for (size_t i = 0; i < c->missing.count; i++) {
		free(c->missing.item[i].subject);
		free(c->missing.item[i].what);
	}
	SL_DROP(&c->missing);
	free(c->stacks.item);
	sl_map_free(&c->index);
	sl_html_changes_free(c->page);
}

/* Opens the catalogue, if a side is a query, before rights are given up. */
static int open_catalogue(struct comparison *c, char *const *paths, unsigned count)
{
	bool asked = false;

	for (unsigned i = 0; i < count; i++)
		asked |= sl_catalogued_is_query(paths[i]);
	if (asked && (c->html || c->collapsed))
		return sl_command_fail(SL_EXIT_USAGE,
				       "--html and --collapsed need stacks, which are in traces: name paths, not queries");
	return asked ? sl_catalogued_store(&c->catalogued, false, NULL) : -1;
}

static void go_inside(struct comparison *c, const struct sl_arguments *parsed)
{
	struct sl_catalogued *catalogued = &c->catalogued;
	const char *store = catalogued->store ? catalogued->catalogue : NULL;

	sl_sandbox_setup(&(struct sl_verb_files){.inputs = parsed->paths,
						 .reads = {store},
						 .writes = {c->html, c->collapsed, store},
						 .open = store,
						 .symbols = parsed->symbols});
}

static int run(struct sl_arguments *parsed)
{
	struct comparison c = {.newest = 5};
	int status = sl_arguments_parse(parsed, NULL, &c);
	unsigned counts[2] = {parsed->split, parsed->path_count - parsed->split};

	if (status < 0 && !counts[1] && counts[0] == 2)
		counts[0] = counts[1] = 1;
	if (status < 0 && (!counts[0] || !counts[1])) {
		sl_arguments_usage(parsed, true);
		status = SL_EXIT_USAGE;
	}
	if (status < 0)
		status = open_catalogue(&c, parsed->paths, parsed->path_count);
	if (status < 0) {
		go_inside(&c, parsed);
		status = counts[0] == 1 && counts[1] == 1 && sl_logs_are(parsed->paths) ? sl_logs_diff(parsed->paths, c.json)
											: compare(&c, parsed->paths, counts);
	}
	comparison_free(&c);
	return status;
}

const struct sl_command sl_command_diff = {
	"diff", "compare one run, or several, with others", "diff [options] BEFORE AFTER", about, table, run};
