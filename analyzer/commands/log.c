/* SPDX-License-Identifier: MIT */
/* stormlog-analyze report over what a program printed. */
#include <string.h>

#include "analyzer/answer/make.h"
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
	const struct sl_log_failure *f = log->first;
	const struct sl_log_frame *frame = f && f->trace.frames ? &f->trace.frame[f->trace.frames - 1] : NULL;
	char text[300];
	bool ledger = false;

	sl_json_object(j, key);
	sl_json_string(j, "form", sl_log_forms[log->form].name);
	sl_json_string(j, "verdict", sl_log_verdicts[log->verdict]);
	sl_json_string(j, "cause", sl_log_causes[log->cause]);
	sl_json_string(j, "program", log->program);
	sl_json_known_uint(j, "device", f ? f->facts.figure[SL_LOG_device] : SL_LOG_UNKNOWN);
	sl_json_known(j, "rank", f ? f->from.rank : -1);
	sl_json_known(j, "first_rank", f ? f->from.rank : -1);
	sl_json_uint(j, "count", log->count);
	for (unsigned i = 0; i <= SL_LOG_unallocated; i++) {
		snprintf(text, sizeof(text), "%s%s_bytes", i == SL_LOG_unallocated ? "reserved_" : "", sl_log_figures[i]);
		if (i != SL_LOG_reserved)
			sl_json_known_uint(j, text, f ? log->figure[i] : SL_LOG_UNKNOWN);
	}
	sl_json_array(j, "others");
	for (unsigned i = 0; f && i < f->facts.others; i++) {
		sl_json_object(j, NULL);
		sl_json_uint(j, "pid", f->facts.other[i].pid);
		sl_json_uint(j, "bytes", f->facts.other[i].bytes);
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

int sl_logs_tell(char *const *paths, bool json, bool quiet, bool check)
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

#define SIZE(bytes) (SL_LOG_KNOWN(bytes) ? SL_SIZE(bytes) : "-")

static bool put_diff(const struct sl_log *before, const struct sl_log *after, bool json)
{
	unsigned grew = 0; /* the part that grew most */
	uint64_t max_growth = 0;

	for (unsigned part = SL_LOG_weights; part <= SL_LOG_non_torch; part++) {
		uint64_t more = sl_log_known_or(sl_log_minus(after->figure[part], before->figure[part]), 0);

		grew = more > max_growth ? part : grew;
		max_growth = more > max_growth ? more : max_growth;
	}
	if (json) {
		struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);

		sl_json_document(j, "stormlog.log_diff", 1);
		sl_logs_json(j, "before", before);
		sl_logs_json(j, "after", after);
		sl_json_string(j, "grew", grew ? sl_log_figures[grew] : NULL);
		return sl_json_finish(j);
	}
	sl_escape_print(stdout, "  %-12s %11s %11s\n", "", "before", "after");
	for (unsigned part = SL_LOG_weights; part <= SL_LOG_non_torch; part++)
		sl_escape_print(stdout, "  %-12s %11s %11s%s\n", sl_log_figures[part], SIZE(before->figure[part]),
				SIZE(after->figure[part]), part == grew ? "   <- grew most" : "");
	sl_escape_print(stdout, "  verdict: %s, then %s\n", sl_log_verdicts[before->verdict], sl_log_verdicts[after->verdict]);
	return true;
}

int sl_logs_diff(char *const *paths, bool json)
{
	struct sl_log *before = sl_log_of((char *const[]){paths[0], NULL}, json),
		      *after = before ? sl_log_of(paths + 1, json) : NULL;
	int status = SL_EXIT_UNREADABLE;

	if (after)
		status = put_diff(before, after, json) && !fflush(stdout) ? SL_EXIT_FINE : SL_EXIT_UNSAVED;
	free(before);
	free(after);
	return status;
}
