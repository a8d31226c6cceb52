/* SPDX-License-Identifier: MIT */
/* stormlog-analyze runs [QUERY] PATH...: runs of folders and of a catalogue, a line each. */

#include <math.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "analyzer/commands/commands.h"
#include "common/now.h"

#define CHANGES_MAX 1000

struct point {
	int64_t run, when_ns;
	double value;
	const char *run_id, *project, *branch, *commit; /* in the arena */
};

/* In the order of --of's words. */
static const enum sl_measure_of sorts[] = {SL_MEASURE_STACK, SL_MEASURE_LEAK, SL_MEASURE_LABEL, SL_MEASURE_LIBRARY,
					   SL_MEASURE_GROWTH};
_Static_assert(SL_COUNT(sorts) == SL_HISTORY_ANY, "as many as words");

struct history {
	struct sl_catalogued *catalogued;
	int field; /* -1: a metric */
	struct sl_store_metric metric;
	unsigned others; /* number of other metrics that the text also matches */
	bool bytes;	 /* bytes; otherwise a count */
	size_t unknown;	 /* number of runs for which it is unknown */
	size_t lossy;	 /* those of them that lost events */
	bool is_dry;	 /* the points are of dry runs */
	size_t left_out; /* dry runs beside points of a device */
	SL_VECTOR(struct point) points;
	struct sl_series_change *changes;
	size_t change_count;
};

/* ---- what is asked for */

static const char *copy_text(struct history *h, const char *text)
{
	return text ? sl_arena_strdup(&h->catalogued->arena, text) : NULL;
}

/* Keeps the first metric, which is the largest; totals are fields of the card. */
static bool choose(void *context, const struct sl_store_metric *metric)
{
	struct history *h = context;

	if (h->metric.metric) {
		h->others++;
		return true;
	}
	h->metric = *metric;
	h->metric.of = copy_text(h, metric->of);
	h->metric.key = copy_text(h, metric->key);
	h->metric.what = copy_text(h, metric->what);
	return true;
}

static int find_quantity(struct history *h, const char *name, unsigned of)
{
	h->field = of != SL_HISTORY_ANY ? -1 : sl_card_field(name);
	if (h->field >= 0 && sl_card_fields[h->field].type != SL_CARD_BYTES && sl_card_fields[h->field].type != SL_CARD_COUNT)
		h->field = -1;
	h->bytes = h->field < 0 || sl_card_fields[h->field].type == SL_CARD_BYTES;
	if (h->field >= 0)
		return -1;
	if (!sl_store_metrics(h->catalogued->store, &h->catalogued->query,
			      of != SL_HISTORY_ANY ? sl_measure_names[sorts[of]] : NULL, name, 0, choose, h))
		return sl_catalogued_fail(h->catalogued);
	if (!h->metric.metric)
		return sl_command_fail(SL_EXIT_USAGE, "history: no figure, place, label or library of these runs is called %s",
				       name);
	if (h->others)
		sl_escape_print(
			stderr,
			"stormlog-analyze: %u places are called so; this is the largest. Choose one by its key, or by --of\n",
			h->others);
	return -1;
}

static bool is_asked_for(const struct sl_catalogued *c, int64_t run)
{
	return !c->narrowed || sl_scan_found(&c->scan, run);
}

#define TIME_SIZE 24

/* "2026-11-21 10:30", or "unknown". */
static const char *write_time(const struct sl_catalogued *c, char out[TIME_SIZE], int64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / 1000000000);
	struct tm tm;

	if (unix_ns < 0 || !(c->utc ? gmtime_r(&seconds, &tm) : localtime_r(&seconds, &tm)) ||
	    !strftime(out, TIME_SIZE, "%Y-%m-%d %H:%M", &tm))
		snprintf(out, TIME_SIZE, "unknown");
	return out;
}

static bool add(void *context, const struct sl_store_point *point)
{
	struct history *h = context;

	if (!is_asked_for(h->catalogued, point->run))
		return true;
	if (h->points.count && point->is_dry != h->is_dry) {
		h->left_out++;
		return true;
	}
	if (point->value < 0) {
		h->unknown++;
		h->lossy += point->lossy;
		return true;
	}
	h->is_dry = point->is_dry;
	*SL_PUSH(&h->points) = (struct point){point->run,
					      point->when_ns,
					      (double)point->value,
					      copy_text(h, point->run_id),
					      copy_text(h, point->project),
					      copy_text(h, point->branch),
					      copy_text(h, point->commit)};
	return true;
}

static void find_changes(struct history *h)
{
	double *values = sl_memory_must(calloc(h->points.count + 1, sizeof(*values)));

	h->changes = sl_memory_must(calloc(CHANGES_MAX, sizeof(*h->changes)));
	for (size_t i = 0; i < h->points.count; i++)
		values[i] = h->points.item[i].value;
	h->change_count = sl_series_changes(values, h->points.count, h->bytes ? 1024 : 0.5, h->changes, CHANGES_MAX);
	free(values);
}

/* ---- text */

static const char *value_text(const struct history *h, char out[SL_FORMAT_BYTES], double value)
{
	if (h->bytes)
		return sl_format_size(out, sl_stats_bytes(value));
	snprintf(out, SL_FORMAT_BYTES, "%.0f", value);
	return out;
}

static const char *name_of(const struct history *h)
{
	return h->field >= 0 ? sl_card_fields[h->field].name : h->metric.what ? h->metric.what : h->metric.key;
}

static void put_change(const struct history *h, const struct sl_series_change *change, const struct sl_terminal *to)
{
	const struct point *at = &h->points.item[change->at], *next = at + 1;
	char when[TIME_SIZE], before[SL_FORMAT_BYTES], after[SL_FORMAT_BYTES], percent[40] = "";

	if (change->before > 0)
		snprintf(percent, sizeof(percent), " (%+.1f %%)", (change->after / change->before - 1) * 100);
	sl_terminal_line(to, 0, 9, "CHANGED  %s  %s -> %s%s", write_time(h->catalogued, when, at->when_ns),
			 value_text(h, before, change->before), value_text(h, after, change->after), percent);
	sl_terminal_line(to, 0, 9, "         run %s%s%.12s%s%s", at->run_id ? at->run_id : "?", at->commit ? "  commit " : "",
			 at->commit ? at->commit : "", at->branch ? "  branch " : "", at->branch ? at->branch : "");
	sl_terminal_line(to, 0, 9, "         the next run, %s, agrees", next->run_id ? next->run_id : "?");
	if (!change->settled)
		sl_terminal_line(to, 0, 9, "         " SL_SERIES_UNSETTLED);
}

#define LOSSY 60

static const char *lossy_text(const struct history *h, char out[LOSSY])
{
	*out = 0;
	if (h->lossy)
		snprintf(out, LOSSY, " (%zu lost events)", h->lossy);
	return out;
}

/* The changes first, then of which runs. */
static void put_text(const struct history *h)
{
	char first[TIME_SIZE], last[TIME_SIZE], unknown[120] = "", lossy[LOSSY];
	char low_text[SL_FORMAT_BYTES], high_text[SL_FORMAT_BYTES];
	const struct point *points = h->points.item;
	struct sl_terminal to = sl_terminal_here();
	double low = points[0].value, high = low;

	for (size_t i = 1; i < h->points.count; i++) {
		low = fmin(low, points[i].value);
		high = fmax(high, points[i].value);
	}
	sl_terminal_line(&to, 0, 4, "%s%s%s", h->field < 0 ? h->metric.of : "", h->field < 0 ? " " : "", name_of(h));
	for (size_t i = 0; i < h->change_count; i++)
		put_change(h, &h->changes[i], &to);
	if (!h->change_count)
		sl_terminal_line(&to, 0, 0, "%s", sl_series_unchanged(h->points.count));
	if (h->unknown)
		snprintf(unknown, sizeof(unknown), "; of %zu more it is not known%s", h->unknown, lossy_text(h, lossy));
	sl_terminal_line(&to, 0, 4, "%zu %sruns, %s .. %s%s; %s .. %s", h->points.count, h->is_dry ? "dry " : "",
			 write_time(h->catalogued, first, points[0].when_ns),
			 write_time(h->catalogued, last, points[h->points.count - 1].when_ns), unknown,
			 value_text(h, low_text, low), value_text(h, high_text, high));
}

/* ---- JSON */

static void put_points(struct sl_json *j, const struct history *h)
{
	sl_json_array(j, "points");
	for (size_t i = 0; i < h->points.count; i++) {
		const struct point *point = &h->points.item[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "run", point->run_id);
		sl_json_known(j, "when", point->when_ns);
		sl_json_int(j, "value", sl_stats_whole(point->value));
		sl_json_string(j, "project", point->project);
		sl_json_string(j, "branch", point->branch);
		sl_json_string(j, "commit", point->commit);
		sl_json_end(j);
	}
	sl_json_end(j);
}

static bool put_json(const struct history *h)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);

	sl_json_document(j, "stormlog.history", 1);
	sl_json_string(j, "of", h->field < 0 ? h->metric.of : "run");
	sl_json_string(j, "key", h->field < 0 ? h->metric.key : name_of(h));
	sl_json_string(j, "what", name_of(h));
	sl_json_string(j, "unit", h->bytes ? "bytes" : "count");
	sl_json_uint(j, "unknown", h->unknown);
	put_points(j, h);
	sl_json_array(j, "changes");
	for (size_t i = 0; i < h->change_count; i++) {
		const struct sl_series_change *change = &h->changes[i];
		const struct point *at = &h->points.item[change->at];

		sl_json_object(j, NULL);
		sl_json_uint(j, "point", change->at);
		sl_json_string(j, "run", at->run_id);
		sl_json_string(j, "commit", at->commit);
		sl_json_double(j, "before", change->before);
		sl_json_double(j, "after", change->after);
		sl_json_string(j, "confirmed_by", at[1].run_id);
		sl_json_bool(j, "settled", change->settled);
		sl_json_end(j);
	}
	sl_json_end(j);
	return sl_json_finish(j);
}

/* ---- */

static int put_history(struct history *h, const char *name, unsigned of, bool json)
{
	int status = find_quantity(h, name, of);

	if (status >= 0)
		return status;
	if (!sl_store_history(h->catalogued->store, &h->catalogued->query, h->metric.metric, h->field, add, h))
		return sl_catalogued_fail(h->catalogued);
	find_changes(h);
	if (h->left_out)
		sl_escape_print(stderr, "stormlog-analyze: %zu dry runs are left out; the query \"not dry=?\" shows only those\n",
				h->left_out);
	if (json)
		return put_json(h) ? SL_EXIT_FINE : SL_EXIT_UNSAVED;
	if (h->points.count)
		put_text(h);
	else
		sl_escape_print(stderr, "stormlog-analyze: no such runs%s%s\n", h->unknown ? " of which it is known" : "",
				lossy_text(h, (char[LOSSY]){0}));
	return SL_EXIT_FINE;
}

/* name: a figure of runs, or a part of the name of a place, label or library, or its key.  Returns an exit status. */
static int show_history(struct sl_catalogued *catalogued, const char *name, unsigned of, bool json)
{
	struct history h = {.catalogued = catalogued, .field = -1};
	int status = put_history(&h, name, of, json);

	free(h.changes);
	SL_DROP(&h.points);
	return status;
}

struct listing {
	struct sl_catalogued catalogued;
	long limit;
	int order;
	unsigned of;
	bool json, history;
	struct sl_json *j;
	struct sl_cells table;
	long shown;
};

#define INTO struct listing
/* The filters are those of Python Stormlog's queries. */
static const struct sl_option table[] = {
	{"--catalogue", 0, "FILE", "the catalogue of runs (default: stormlog/catalogue.sqlite of $XDG_STATE_HOME)"},
	{"--run-id", 0, "ID", "only the run of this id"},
	{"--session-id", 0, "ID", "only runs with this session (each process is one)"},
	{"--job-id", 0, "ID", "only runs of this job"},
	{"--rank", 0, "N", "only runs in which this rank was recorded"},
	{"--world-size", 0, "N", "only runs of so many ranks"},
	{"--status", 0, "WORD", "only runs that are completed, failed, killed, running, unknown or damaged"},
	{"--has-oom-bundle", 0, NULL, "only runs that ran out of memory"},
	{"--no-has-oom-bundle", 0, NULL, "only runs that did not"},
	{"--created-after", 0, "TIME", "only runs begun after that: a date, a date and a time, or -7d"},
	{"--created-before", 0, "TIME", "only runs begun before that"},
	{"--quiet", 'q', NULL, "no progress"},
	{"--utc", 0, NULL, "times in UTC (default: local)"},
	{"--limit", 0, "N", "the newest N (default: all)", SL_TO_LONG(limit, 1, 1000000000)},
	{"--sort", 0, "FIELD", "largest first, instead of the newest"},
	{"--json", 0, NULL, "as JSON (schemas/runs.schema.json, history.schema.json)", SL_TO_FLAG(json)},
	{"--history", 0, NULL,
	 "one quantity over the runs, and the runs where it changed.  The first word names it: a figure (peak, leak, hidden, oom, "
	 "ranks, "
	 "processes, devices, findings), or a part of the name of a place, label or library (as diff prints it), or its key",
	 SL_TO_FLAG(history)},
	{"--of", 0, "stack|leak|label|library|growth", "which of these the name means (default: the largest)", SL_TO_WORD(of)},
	SL_OPTION_SYMBOLS,
	{0},
};
enum { CATALOGUE, FIRST_FILTER, STATUS = 6, QUIET = 11, UTC, LIMIT, SORT };

/* Turns the options from FIRST_FILTER on into terms of a query. */
static const char *const terms[] = {"run=\"%s\"",    "session=\"%s\"", "job=\"%s\"",   "rank=\"%s\"", "ranks=\"%s\"",
				    "status=\"%s\"", "bundle=1",       "not bundle=1", "when>\"%s\"", "when<\"%s\""};

static bool is_status(const char *word)
{
	static const char *const words[] = {"completed", "failed", "killed", "running", "unknown", "damaged"};
	size_t i = 0;

	while (i < SL_COUNT(words) && strcmp(word, words[i]))
		i++;
	return i < SL_COUNT(words);
}

/* Takes an option up to UTC; false: the value is invalid. */
static bool take_catalogued(struct sl_catalogued *c, int option, const char *value)
{
	struct sl_query query;
	struct sl_query_error error;
	const char *term;
	bool fine;

	if (option == CATALOGUE)
		c->catalogue = value;
	else if (option == QUIET)
		c->quiet = true;
	else if (option == UTC)
		c->utc = true;
	if (option < FIRST_FILTER || option >= QUIET)
		return true;
	if (value && (strchr(value, '"') || (option == STATUS && !is_status(value))))
		return false;
	term = terms[option - FIRST_FILTER];
	if (value) {
		const char *at = strstr(term, "%s");

		term = sl_arena_printf(&c->arena, "%.*s%s%s", (int)(at - term), term, value, at + 2);
	}
	fine = sl_query_parse(&query, term, sl_now_ns(CLOCK_REALTIME), &error);
	sl_query_free(&query);
	c->filters = c->filters ? sl_arena_printf(&c->arena, "%s %s", c->filters, term) : term;
	return fine;
}

static int learn(struct sl_catalogued *c, char *const *paths, unsigned count)
{
	sl_sandbox_setup(
		&(struct sl_verb_files){.inputs = paths, .writes = {c->catalogue}, .open = c->catalogue, .symbols = c->symbols});
	c->scan = (struct sl_scan){.store = c->store, .quiet = c->quiet};
	c->narrowed = count > 0;
	if (!count || sl_scan_paths(&c->scan, paths, count)) {
		if (!c->scan.empty)
			return c->scan.unread && !c->scan.runs.count ? SL_EXIT_UNREADABLE : -1;
		sl_paths_empty(paths, count, "trace, summary, pack or log");
		return SL_EXIT_UNREADABLE;
	}
	if (!c->scan.missing)
		return sl_catalogued_fail(c);
	sl_paths_failed(c->scan.missing);
	return SL_EXIT_USAGE;
}

/*
 * Opens the catalogue and adds new runs below the existing paths (without the first `skip`).  A path that does not exist is parsed
 * as a query (no such path: every run).  After this the program is confined (sandbox_setup.c).  Returns an exit status after
 * printing why, or -1: go on.  Call sl_catalogued_close in every case.
 */
static int open_catalogue(struct sl_catalogued *c, const struct sl_arguments *parsed, unsigned skip)
{
	char *const *paths = parsed->paths + skip;
	unsigned count = parsed->path_count - skip;
	const char *query = NULL;
	char **existing = sl_memory_must(calloc(count + 1, sizeof(*existing)));
	unsigned found = 0;
	int status = -1;

	c->symbols = parsed->symbols;
	for (unsigned i = 0; i < count && status < 0; i++) {
		if (!access(paths[i], F_OK)) {
			existing[found++] = paths[i];
		} else if (query || !sl_catalogued_is_query(paths[i])) {
			sl_paths_failed(paths[i]);
			status = SL_EXIT_USAGE;
		} else {
			query = paths[i];
		}
	}
	if (status < 0)
		status = sl_catalogued_query(c, query ? query : "");
	if (status < 0)
		status = sl_catalogued_store(c, true, existing);
	if (status < 0)
		status = learn(c, existing, found);
	free(existing);
	return status;
}

static bool take(void *context, int option, const char *value)
{
	struct listing *l = context;

	if (option == SORT)
		return (l->order = sl_card_field(value)) >= 0;
	return take_catalogued(&l->catalogued, option, value);
}

/* ---- the table */

static const char *const titles[] = {"WHEN", "PROJECT", "COMMAND", "RANKS", "PEAK", "LEFT", "OOM", "STATUS", "COMMIT"};
#define COMMAND 28 /* columns of a command, and */
#define COMMIT	10 /* characters of a commit that are shown */

static const char *size_of(char *out, int64_t bytes)
{
	return bytes < 0 ? "?" : sl_format_size(out, (uint64_t)bytes);
}

/* Program and script without their folders. */
static void short_command(char *out, size_t size, const char *command)
{
	size_t used = 0;

	for (unsigned word = 0; *command && used + 1 < size; word++) {
		size_t length = strcspn(command, " ");
		const char *slash = word < 2 ? memrchr(command, '/', length) : NULL;
		const char *from = slash ? slash + 1 : command;

		used += (size_t)snprintf(out + used, size - used, "%s%.*s", word ? " " : "", (int)(command + length - from), from);
		command += length + (command[length] == ' ');
	}
}

static const char *count_of(char out[SL_FORMAT_BYTES], int64_t count)
{
	snprintf(out, SL_FORMAT_BYTES, count < 0 ? "?" : "%lld", (long long)count);
	return out;
}

static void put_row(struct listing *l, const struct sl_card *card)
{
	char text[SL_FORMAT_BYTES], peak[SL_CARD_PEAK], command[COMMAND + 1];

	for (size_t i = 0; i < SL_COUNT(titles) && l->table.cell.count < SL_COUNT(titles); i++)
		sl_cells_put(&l->table, SL_COLOUR_DIM, "%s", titles[i]);
	short_command(command, sizeof(command), card->command ? card->command : "?");
	sl_cells_put(&l->table, SL_COLOUR_NONE, "%s",
		     write_time(&l->catalogued, text, card->started_ns < 0 ? card->ended_ns : card->started_ns));
	sl_cells_put(&l->table, SL_COLOUR_NONE, "%s", card->project ? card->project : "?");
	sl_cells_put(&l->table, SL_COLOUR_NONE, "%s", command);
	sl_cells_put(&l->table, SL_COLOUR_NONE, "%s", count_of(text, card->ranks));
	sl_cells_put(&l->table, SL_COLOUR_NONE, "%s", sl_card_peak(peak, card->peak_bytes, card->lost) ?: "?");
	sl_cells_put(&l->table, SL_COLOUR_NONE, "%s", size_of(text, card->leak_bytes));
	sl_cells_put(&l->table, SL_COLOUR_NONE, "%s", count_of(text, card->ooms));
	sl_cells_put(&l->table, SL_COLOUR_NONE, "%s%s%s", card->status ? card->status : "?", card->dry ? ", dry " : "",
		     card->dry ? card->dry : "");
	sl_cells_put(&l->table, SL_COLOUR_NONE, "%.*s", COMMIT, card->commit_id ? card->commit_id : "");
}

/* ---- */

static bool show(void *context, const struct sl_card *card)
{
	struct listing *l = context;

	if (!is_asked_for(&l->catalogued, card->run))
		return true;
	if (l->json)
		sl_card_write(l->j, NULL, card, false);
	else
		put_row(l, card);
	return !l->limit || ++l->shown < l->limit;
}

static int list(struct listing *l)
{
	struct sl_terminal to = sl_terminal_here();
	struct sl_store_ask ask = {.query = &l->catalogued.query, .order = l->order};
	bool fine;

	if (l->json) {
		l->j = sl_json_new(stdout, SL_JSON_INDENT);
		sl_json_document(l->j, "stormlog.runs", 1);
		sl_json_uint(l->j, "read", l->catalogued.scan.read);
		sl_json_array(l->j, "runs");
	}
	fine = sl_store_runs(l->catalogued.store, &ask, show, l);
	if (l->json) {
		sl_json_end(l->j);
		if (!sl_json_finish(l->j))
			return SL_EXIT_UNSAVED;
	} else if (fine && l->table.cell.count) {
		sl_cells_print(&l->table, &to, 0);
	} else if (fine) {
		sl_escape_print(stderr, "stormlog-analyze: no such runs\n");
	}
	return fine ? SL_EXIT_FINE : sl_catalogued_fail(&l->catalogued);
}

static int run(struct sl_arguments *parsed)
{
	struct listing l = {.order = -1, .of = SL_HISTORY_ANY, .table.columns = "wwwrrrrwl"};
	int status = sl_arguments_parse(parsed, take, &l);

	if (status < 0 && l.history && !parsed->path_count)
		status = sl_command_fail(SL_EXIT_USAGE, "--history (history) needs the name of a figure, place, label or library");
	if (status < 0)
		status = open_catalogue(&l.catalogued, parsed, l.history);
	if (status < 0)
		status = l.history ? show_history(&l.catalogued, parsed->paths[0], l.of, l.json) : list(&l);
	return sl_catalogued_close(&l.catalogued, status);
}

const struct sl_command sl_command_runs = {"runs",
					   "many runs, below folders and in a catalogue, found by a query",
					   "runs [options] [QUERY] [PATH...]",
					   sl_query_help,
					   table,
					   run,
					   SL_PATHS_OPTIONAL};
