/* SPDX-License-Identifier: MIT */
/* stormlog-analyze dump PATH: every event as one JSON line, in time order over all processes of the run. */
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/commands.h"
#include "analyzer/commands/begin.h"
#include "analyzer/base/json.h"
#include "analyzer/exports/merge.h"

#define INTO struct sl_merge_options
static const struct sl_option table[] = {
	SL_OPTION_RUN(run),
	{"--json", 0, NULL, "has no effect: the output is always one JSON object a line"},
	{0},
};

static void put(struct sl_json *j, const struct sl_merge_process *p)
{
	const struct sl_event *event = p->item->event;
	const struct sl_defs *defs = &p->process.trace->defs;
	struct sl_event_view view;

	sl_merge_view(&view, p);
	sl_json_object(j, NULL);
	sl_merge_put(j, &view);
	if (event->python || event->native) {
		struct sl_stack_frame frames[SL_STACK_MAX];
		unsigned count = sl_stacks_resolve(frames, defs, NULL, sl_stack_of(event));

		sl_stacks_write(j, frames, count);
	} else {
		sl_json_null(j, "stack");
	}
	sl_json_string(j, "label", view.label);
	sl_json_known(j, "step", view.step);
	sl_json_end(j);
	sl_json_newline(j);
}

static const char about[] = "Every event as a line of JSON, in time order over all processes of the run.";

static int run(struct sl_arguments *parsed)
{
	static const int statuses[] = {
		[SL_MERGE_FINE] = SL_EXIT_FINE, [SL_MERGE_USAGE] = SL_EXIT_USAGE, [SL_MERGE_UNREADABLE] = SL_EXIT_UNREADABLE};
	struct sl_merge_options options = {.rank = -1};
	struct sl_merge merge;
	struct sl_merge_process *p;
	struct sl_json *j;
	int status = sl_arguments_parse(parsed, NULL, &options);

	if (status >= 0)
		return status;
	sl_begin(&(struct sl_verb_files){.inputs = parsed->paths});
	status = statuses[sl_merge_open(&merge, parsed->paths, parsed->path_count, &options)];
	if (status == SL_EXIT_FINE) {
		j = sl_json_new(stdout, SL_JSON_COMPACT);
		while ((p = sl_merge_next(&merge)))
			if (p->item->kind == SL_ITEM_EVENT)
				put(j, p);
		sl_json_close(j);
	}
	sl_merge_close(&merge);
	return status;
}

const struct sl_command sl_command_dump = {
	"dump", "every event as a line of JSON, in time order", "dump [options] PATH...", about, table, run};
