/* SPDX-License-Identifier: MIT */
/* stormlog-analyze runs [QUERY] PATH...: runs of folders and of a catalogue, a line each. */

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/commands/commands.h"

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
static const struct sl_option table[] = {
	SL_OPTION_CATALOGUED,
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
enum { LIMIT = SL_CATALOGUED_OPTIONS, SORT, JSON };

static bool take(void *context, int option, const char *value)
{
	struct listing *l = context;

	if (option == SORT)
		return (l->order = sl_card_field(value)) >= 0;
	return sl_catalogued_take(&l->catalogued, option, value);
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
	char text[SL_FORMAT_BYTES], command[COMMAND + 1];

	for (size_t i = 0; i < SL_COUNT(titles) && l->table.cell.count < SL_COUNT(titles); i++)
		sl_cells_put(&l->table, SL_COLOUR_DIM, "%s", titles[i]);
	short_command(command, sizeof(command), card->command ? card->command : "?");
	sl_cells_put(&l->table, SL_COLOUR_NONE, "%s",
		     sl_catalogued_time(&l->catalogued, text, card->started_ns < 0 ? card->ended_ns : card->started_ns));
	sl_cells_put(&l->table, SL_COLOUR_NONE, "%s", card->project ? card->project : "?");
	sl_cells_put(&l->table, SL_COLOUR_NONE, "%s", command);
	sl_cells_put(&l->table, SL_COLOUR_NONE, "%s", count_of(text, card->ranks));
	sl_cells_put(&l->table, SL_COLOUR_NONE, "%s", size_of(text, card->peak_bytes));
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

	if (!sl_catalogued_has(&l->catalogued, card->run))
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
		status = sl_catalogued_open(&l.catalogued, parsed, l.history);
	if (status < 0)
		status = l.history ? sl_history_show(&l.catalogued, parsed->paths[0], l.of, l.json) : list(&l);
	return sl_catalogued_close(&l.catalogued, status);
}

const struct sl_command sl_command_runs = {"runs",
					   "many runs, below folders and in a catalogue, found by a query",
					   "runs [options] [QUERY] [PATH...]",
					   sl_query_help,
					   table,
					   run,
					   SL_PATHS_OPTIONAL};
