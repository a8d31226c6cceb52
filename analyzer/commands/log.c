/* SPDX-License-Identifier: MIT */
/* stormlog-analyze report over what a program printed. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/answer/log.h"
#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/terminal.h"
#include "analyzer/commands/commands.h"
#include "analyzer/faces/faces.h"

static bool is_standard_input(const char *path)
{
	return strcmp(path, "-") == 0;
}

static enum sl_log_kind kind_of(const char *path)
{
	/* what has a snapshot's name is one, or says why it is none */
	FILE *file = is_standard_input(path) || sl_names_may_be_snapshot(path) ? NULL : sl_paths_open_file(path);
	enum sl_log_kind kind = file ? sl_log_kind_of_file(file) : is_standard_input(path) ? SL_LOG_IS_TEXT : SL_LOG_IS_RECORDS;

	if (file)
		fclose(file);
	return kind;
}

bool sl_logs_are(char *const *paths)
{
	for (; *paths; paths++)
		if (kind_of(*paths) != SL_LOG_IS_TEXT)
			return false;
	return true;
}

static const char *what_is(const char *path)
{
	char first[4] = "";
	FILE *file = sl_paths_open_file(path);
	size_t size = file ? fread(first, 1, sizeof(first), file) : 0;

	if (file)
		fclose(file);
	return size == 4 && !memcmp(first, "\177ELF", 4) ? "a program" : "a binary file";
}

bool sl_logs_refuse(char *const *paths)
{
	while (*paths && kind_of(*paths) != SL_LOG_IS_BINARY)
		paths++;
	if (*paths && !sl_foreign_tell(paths, 1))
		sl_command_fail(SL_EXIT_UNREADABLE,
				"%s: %s, not a recording; these are read: traces (.msgpack.zst), packs (.stormlog), PyTorch's "
				"snapshots (.pickle), logs, Stormlog's telemetry",
				*paths, what_is(*paths));
	return *paths != NULL;
}

static uint64_t file_bytes; /* of the log that is read */

static void show_progress(uint64_t read)
{
	if (file_bytes)
		fprintf(stderr, "\r\033[Kreading: %3.0f %%", 100 * (double)read / (double)file_bytes);
}

struct sl_log *sl_logs_read(char *const *paths, bool quiet)
{
	struct sl_log *log = sl_log_new();

	for (; *paths; paths++) {
		FILE *file = is_standard_input(*paths) ? stdin : sl_paths_open_file(*paths);
		bool shown = !quiet && sl_terminal_rewrites(STDERR_FILENO);
		struct stat st = {0};
		const char *why = NULL;

		if (file && !fstat(fileno(file), &st))
			file_bytes = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
		if (file)
			why = sl_log_read(log, file, *paths, shown ? show_progress : NULL);
		if (shown)
			fputs("\r\033[K", stderr);
		if (file && file != stdin)
			fclose(file);
		if (file && !why)
			continue;
		if (file)
			sl_escape_print(stderr, "stormlog-analyze: %s: %s\n", *paths, why);
		else
			sl_paths_failed(*paths);
		sl_log_free(log);
		return NULL;
	}
	sl_log_judge(log);
	return log;
}

/* "attention.py:38"; NULL: no own frame. */
static void put_line(struct sl_json *j, const struct sl_log_failure *f)
{
	const struct sl_log_frame *frame = f && f->frames ? &f->frame[f->frames - 1] : NULL;
	char line[300];

	if (frame)
		snprintf(line, sizeof(line), "%s:%u", frame->file, frame->line);
	sl_json_string(j, "line", frame ? line : NULL);
}

static const enum sl_log_figure parts[] = {SL_LOG_weights, SL_LOG_activations, SL_LOG_kv_cache, SL_LOG_graphs, SL_LOG_non_torch};

void sl_logs_json(struct sl_json *j, const char *key, const struct sl_log *log)
{
	static const struct {
		const char *key;
		enum sl_log_figure figure;
	} bytes[] = {{"asked_bytes", SL_LOG_asked},	    {"free_bytes", SL_LOG_free},
		     {"total_bytes", SL_LOG_total},	    {"process_bytes", SL_LOG_process},
		     {"allocated_bytes", SL_LOG_allocated}, {"reserved_unallocated_bytes", SL_LOG_unallocated}};
	const struct sl_log_failure *f = log->told;
	bool ledger = false;

	sl_json_object(j, key);
	sl_json_string(j, "form", sl_log_form_name(log->form));
	sl_json_string(j, "verdict", sl_log_verdict_name(log->verdict));
	sl_json_string(j, "cause", sl_log_cause_name(log->cause));
	sl_json_string(j, "program", sl_log_form_program(log->form) ?: sl_log_form_program(log->server));
	sl_json_known_uint(j, "device", f ? f->figure[SL_LOG_device] : SL_LOG_UNKNOWN);
	sl_json_known(j, "rank", f ? f->rank : -1);
	sl_json_known(j, "first_rank", f ? f->rank : -1);
	sl_json_uint(j, "count", log->count);
	for (unsigned i = 0; i < SL_COUNT(bytes); i++)
		sl_json_known_uint(j, bytes[i].key, f ? f->figure[bytes[i].figure] : SL_LOG_UNKNOWN);
	sl_json_array(j, "others");
	for (unsigned i = 0; f && i < f->others; i++) {
		sl_json_object(j, NULL);
		sl_json_int(j, "pid", f->other[i].pid);
		sl_json_known_uint(j, "bytes", f->other[i].bytes);
		sl_json_end(j);
	}
	sl_json_end(j);
	for (unsigned i = 0; i < SL_COUNT(parts); i++)
		ledger |= log->ledger[parts[i]] != SL_LOG_UNKNOWN;
	if (ledger) {
		sl_json_object(j, "ledger");
		for (unsigned i = 0; i < SL_COUNT(parts); i++)
			sl_json_known_uint(j, sl_log_figure_name(parts[i]), log->ledger[parts[i]]);
		sl_json_end(j);
	} else {
		sl_json_null(j, "ledger");
	}
	put_line(j, f);
	sl_json_end(j);
}

static struct sl_answers *answer_of(const struct sl_log *log, char *const *paths)
{
	return sl_answer_log(log, is_standard_input(paths[0]) ? "standard input" : sl_paths_name(paths[0]));
}

int sl_logs_report(char *const *paths, const struct sl_report_options *options)
{
	struct sl_log *log;
	struct sl_answers *answers;
	bool fine = true;

	if (options->output)
		return sl_command_fail(SL_EXIT_USAGE, "-o is of traces, and %s is a log: it writes no file", paths[0]);
	log = sl_logs_read(paths, options->quiet || options->json);
	if (!log)
		return SL_EXIT_UNREADABLE;
	answers = answer_of(log, paths);
	if (options->json) {
		struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);

		sl_json_document(j, "stormlog.log", 1);
		sl_logs_json(j, "log", log);
		sl_face_json(j, "answer", answers);
		fine = sl_json_finish(j);
	} else if (!options->quiet) {
		sl_terminal_show(answers);
	}
	sl_answers_free(answers);
	sl_log_free(log);
	return fine && !fflush(stdout) ? SL_EXIT_FINE : SL_EXIT_UNSAVED;
}

int sl_logs_check(char *const *paths, bool quiet)
{
	struct sl_log *log = sl_logs_read(paths, true);
	struct sl_answers *answers;
	bool fails;

	if (!log)
		return SL_EXIT_UNREADABLE;
	fails = log->verdict >= SL_LOG_VERDICT_host_memory;
	answers = answer_of(log, paths);
	if (fails || !quiet)
		sl_terminal_show(answers);
	sl_answers_free(answers);
	sl_log_free(log);
	return fflush(stdout) ? SL_EXIT_UNSAVED : fails ? SL_EXIT_LIMIT : SL_EXIT_FINE;
}

/* The part that grew most between two accounts; -1: none did. */
static int grown(struct sl_log *const logs[2])
{
	int64_t most = 0;
	int part = -1;

	for (unsigned i = 0; i < SL_COUNT(parts); i++) {
		uint64_t before = logs[0]->ledger[parts[i]], after = logs[1]->ledger[parts[i]];

		if (before == SL_LOG_UNKNOWN || after == SL_LOG_UNKNOWN || (int64_t)(after - before) <= most)
			continue;
		most = (int64_t)(after - before);
		part = (int)i;
	}
	return part;
}

static const char *say_part(char *out, uint64_t bytes)
{
	return bytes == SL_LOG_UNKNOWN ? "-" : sl_format_size(out, bytes);
}

static bool put_diff(struct sl_log *const logs[2], bool json)
{
	int part = grown(logs);
	char before[SL_FORMAT_BYTES], after[SL_FORMAT_BYTES];

	if (json) {
		struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);

		sl_json_document(j, "stormlog.log_diff", 1);
		sl_logs_json(j, "before", logs[0]);
		sl_logs_json(j, "after", logs[1]);
		sl_json_string(j, "grew", part < 0 ? NULL : sl_log_figure_name(parts[part]));
		return sl_json_finish(j);
	}
	sl_escape_print(stdout, "  %-12s %11s %11s\n", "", "before", "after");
	for (unsigned i = 0; i < SL_COUNT(parts); i++)
		sl_escape_print(stdout, "  %-12s %11s %11s%s\n", sl_log_figure_name(parts[i]),
				say_part(before, logs[0]->ledger[parts[i]]), say_part(after, logs[1]->ledger[parts[i]]),
				(int)i == part ? "   <- grew most" : "");
	sl_escape_print(stdout, "  verdict: %s, then %s\n", sl_log_verdict_name(logs[0]->verdict),
			sl_log_verdict_name(logs[1]->verdict));
	return true;
}

int sl_logs_diff(char *const *paths, bool json)
{
	struct sl_log *logs[2] = {0};
	int status = SL_EXIT_FINE;

	for (unsigned i = 0; i < 2 && status == SL_EXIT_FINE; i++) {
		logs[i] = sl_logs_read((char *const[]){paths[i], NULL}, json);
		status = logs[i] ? status : SL_EXIT_UNREADABLE;
	}
	if (status == SL_EXIT_FINE && (!put_diff(logs, json) || fflush(stdout)))
		status = SL_EXIT_UNSAVED;
	for (unsigned i = 0; i < 2; i++)
		if (logs[i])
			sl_log_free(logs[i]);
	return status;
}
