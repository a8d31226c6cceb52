/* SPDX-License-Identifier: MIT */
/* stormlog-analyze report over what a program printed. */
#include <string.h>

#include "analyzer/answer/log.h"
#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/paths.h"
#include "analyzer/commands/commands.h"
#include "analyzer/faces/faces.h"

static enum sl_log_kind kind_of(const char *path)
{
	/* what has a snapshot's name is one, or says why it is none */
	return strcmp(path, "-") == 0		 ? SL_LOG_IS_TEXT
	       : sl_images_may_be_snapshot(path) ? SL_LOG_IS_RECORDS
						 : sl_log_kind_of_file(path);
}

bool sl_logs_are(char *const *paths)
{
	while (*paths && kind_of(*paths) == SL_LOG_IS_TEXT)
		paths++;
	return !*paths;
}

bool sl_logs_refuse(char *const *paths)
{
	while (*paths && kind_of(*paths) < SL_LOG_IS_BINARY)
		paths++;
	if (*paths && !sl_foreign_tell(paths, 1))
		sl_command_fail(SL_EXIT_UNREADABLE,
				"%s: %s, not a recording; these are read: traces (.msgpack.zst), packs (.stormlog), "
				"PyTorch's snapshots (.pickle), logs, Stormlog's telemetry",
				*paths, kind_of(*paths) == SL_LOG_IS_PROGRAM ? "a program" : "a binary file");
	return *paths != NULL;
}

void sl_logs_json(struct sl_json *j, const char *key, const struct sl_log *log)
{
	const struct sl_log_failure *f = log->told;
	const struct sl_log_frame *frame = f && f->frames ? &f->frame[f->frames - 1] : NULL;
	char text[300];
	bool ledger = false;

	sl_json_object(j, key);
	sl_json_string(j, "form", sl_log_forms[log->form].name);
	sl_json_string(j, "verdict", sl_log_verdicts[log->verdict]);
	sl_json_string(j, "cause", sl_log_causes[log->cause]);
	sl_json_string(j, "program", log->program);
	sl_json_known_uint(j, "device", f ? f->said.figure[SL_LOG_device] : SL_LOG_UNKNOWN);
	sl_json_known(j, "rank", f ? f->rank : -1);
	sl_json_known(j, "first_rank", f ? f->rank : -1);
	sl_json_uint(j, "count", log->count);
	for (unsigned i = 0; i <= SL_LOG_unallocated; i++) {
		snprintf(text, sizeof(text), "%s%s_bytes", i == SL_LOG_unallocated ? "reserved_" : "", sl_log_figures[i]);
		if (i != SL_LOG_reserved)
			sl_json_known_uint(j, text, f ? log->figure[i] : SL_LOG_UNKNOWN);
	}
	sl_json_array(j, "others");
	for (unsigned i = 0; f && i < f->said.others; i++) {
		sl_json_object(j, NULL);
		sl_json_uint(j, "pid", f->said.other[i].pid);
		sl_json_uint(j, "bytes", f->said.other[i].bytes);
		sl_json_end(j);
	}
	sl_json_end(j);
	for (unsigned part = SL_LOG_weights; part <= SL_LOG_non_torch; part++)
		ledger |= SL_LOG_KNOWN(log->figure[part]);
	if (ledger) {
		sl_json_object(j, "ledger");
		for (unsigned part = SL_LOG_weights; part <= SL_LOG_non_torch; part++)
			sl_json_known_uint(j, sl_log_figures[part], log->figure[part]);
		sl_json_end(j);
	} else {
		sl_json_null(j, "ledger");
	}
	snprintf(text, sizeof(text), "%s:%u", frame ? frame->file : "", frame ? frame->line : 0);
	sl_json_string(j, "line", frame ? text : NULL);
	sl_json_end(j);
}

/* check: of the limit --no-oom. */
static int tell(char *const *paths, bool json, bool quiet, bool check)
{
	struct sl_log *log = sl_log_of(paths, quiet || json || check);
	bool fails = check && log && log->verdict >= SL_LOG_VERDICT_host_memory, fine = true;
	struct sl_answers *answers;

	if (!log)
		return SL_EXIT_UNREADABLE;
	answers = sl_answer_log(log, strcmp(paths[0], "-") ? sl_paths_name(paths[0]) : "standard input");
	if (json) {
		struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);

		sl_json_document(j, "stormlog.log", 1);
		sl_logs_json(j, "log", log);
		sl_face_json(j, "answer", answers, "");
		fine = sl_json_finish(j);
	} else if (fails || !quiet) {
		sl_terminal_show(answers);
	}
	sl_answers_free(answers);
	free(log);
	return !fine || fflush(stdout) ? SL_EXIT_UNSAVED : fails ? SL_EXIT_LIMIT : SL_EXIT_FINE;
}

int sl_logs_report(char *const *paths, const struct sl_report_options *options)
{
	if (options->output)
		return sl_command_fail(SL_EXIT_USAGE, "-o is of traces, and %s is a log: it writes no file", paths[0]);
	return tell(paths, options->json, options->quiet, false);
}

int sl_logs_check(char *const *paths, bool quiet)
{
	return tell(paths, false, quiet, true);
}

static const char *say_part(char *out, uint64_t bytes)
{
	return SL_LOG_KNOWN(bytes) ? sl_format_size(out, bytes) : "-";
}

static bool put_diff(struct sl_log *const logs[2], bool json)
{
	unsigned grew = 0; /* the part that grew most */
	uint64_t most = 0;
	char before[SL_FORMAT_BYTES], after[SL_FORMAT_BYTES];

	for (unsigned part = SL_LOG_weights; part <= SL_LOG_non_torch; part++) {
		uint64_t more = sl_log_minus(logs[1]->figure[part], logs[0]->figure[part]);

		if (SL_LOG_KNOWN(more) && more > most) {
			most = more;
			grew = part;
		}
	}
	if (json) {
		struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);

		sl_json_document(j, "stormlog.log_diff", 1);
		sl_logs_json(j, "before", logs[0]);
		sl_logs_json(j, "after", logs[1]);
		sl_json_string(j, "grew", grew ? sl_log_figures[grew] : NULL);
		return sl_json_finish(j);
	}
	sl_escape_print(stdout, "  %-12s %11s %11s\n", "", "before", "after");
	for (unsigned part = SL_LOG_weights; part <= SL_LOG_non_torch; part++)
		sl_escape_print(stdout, "  %-12s %11s %11s%s\n", sl_log_figures[part], say_part(before, logs[0]->figure[part]),
				say_part(after, logs[1]->figure[part]), part == grew ? "   <- grew most" : "");
	sl_escape_print(stdout, "  verdict: %s, then %s\n", sl_log_verdicts[logs[0]->verdict], sl_log_verdicts[logs[1]->verdict]);
	return true;
}

int sl_logs_diff(char *const *paths, bool json)
{
	struct sl_log *logs[2] = {0};
	int status = SL_EXIT_FINE;

	for (unsigned i = 0; i < 2 && (!i || logs[0]); i++)
		logs[i] = sl_log_of((char *const[]){paths[i], NULL}, json);
	if (!logs[1])
		status = SL_EXIT_UNREADABLE;
	else if (!put_diff(logs, json) || fflush(stdout))
		status = SL_EXIT_UNSAVED;
	free(logs[0]);
	free(logs[1]);
	return status;
}
