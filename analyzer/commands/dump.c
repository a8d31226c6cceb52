/* SPDX-License-Identifier: MIT */
/* stormlog-analyze dump PATH: every event as one JSON line, in time order over all processes of the run. */
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/commands.h"
#include "analyzer/commands/verb_rights.h"
#include "analyzer/base/json.h"
#include "analyzer/exports/stream.h"

#define INTO struct sl_stream_options
static const struct sl_option table[] = {
	SL_OPTION_RUN(run),
	{"--json", 0, NULL, "changes nothing: it always prints one JSON object a line"},
	{0},
};

static void put(struct sl_json *j, const struct sl_stream_process *p)
{
	const struct sl_event *event = p->item->event;
	const struct sl_hook *hook = p->item->hook;
	const struct sl_trace *trace = p->process.trace;
	const struct sl_thread *thread = sl_defs_thread(&trace->defs, p->item->thread);
	bool in_flight = event->flags & SL_FLAG_in_flight, before = hook && hook->stamped_before;
	uint64_t begin = before || in_flight ? p->unix_ns : p->unix_ns - event->duration_ns;

	sl_json_object(j, NULL);
	sl_json_uint(j, "t0_ns", begin);
	if (in_flight)
		sl_json_null(j, "t1_ns");
	else
		sl_json_uint(j, "t1_ns", begin + event->duration_ns);
	sl_json_known(j, "rank", trace->header.rank);
	sl_json_int(j, "pid", trace->header.pid);
	sl_json_int(j, "thread", thread && thread->tid ? thread->tid : (int64_t)p->item->thread);
	sl_json_string(j, "api", hook ? hook->name : NULL);
	sl_json_string(j, "verb", hook ? sl_event_verbs[hook->verb].name : NULL);
	sl_json_string(j, "kind", event->kind && event->kind < SL_KIND_COUNT ? sl_event_kinds[event->kind].name : NULL);
	sl_json_nonzero(j, "address", event->address);
	sl_json_nonzero(j, "bytes", event->bytes);
	sl_json_known(j, "device", event->device);
	sl_json_nonzero(j, "stream", event->stream);
	if (event->flags & (SL_FLAG_in_flight |
			    SL_FLAG_abandoned)) /* the call never returned, or was left by longjmp, an exception or cancellation */
		sl_json_null(j, "result");
	else
		sl_json_int(j, "result", event->result);
	if (event->python || event->native) {
		struct sl_stack_frame frames[SL_STACK_MAX];
		unsigned count = sl_stacks_resolve(frames, &trace->defs, NULL, sl_stack_of(event));

		sl_stacks_write(j, frames, count);
	} else {
		sl_json_null(j, "stack");
	}
	sl_json_string(j, "label", event->label ? sl_defs_text(&trace->defs, event->label) : NULL);
	sl_json_known(j, "step", sl_item_step(p->item, &trace->defs));
	sl_json_end(j);
	sl_json_newline(j);
}

static const char about[] = "Every event as a line of JSON, in time order over all processes of the run.";

static int run(struct sl_arguments *parsed)
{
	static const int statuses[] = {
		[SL_STREAM_FINE] = SL_EXIT_FINE, [SL_STREAM_USAGE] = SL_EXIT_USAGE, [SL_STREAM_UNREADABLE] = SL_EXIT_UNREADABLE};
	struct sl_stream_options options = {.rank = -1};
	struct sl_stream stream;
	struct sl_stream_process *p;
	struct sl_json *j;
	int status = sl_arguments_parse(parsed, NULL, &options);

	if (status >= 0)
		return status;
	sl_verb_rights(&(struct sl_rights){.inputs = parsed->paths});
	status = statuses[sl_stream_open(&stream, parsed->paths, parsed->path_count, &options)];
	if (status == SL_EXIT_FINE) {
		j = sl_json_new(stdout, SL_JSON_COMPACT);
		while ((p = sl_stream_next(&stream)))
			if (p->item->kind == SL_ITEM_EVENT)
				put(j, p);
		sl_json_close(j);
	}
	sl_stream_close(&stream);
	return status;
}

const struct sl_command sl_command_dump = {
	"dump", "every event as a line of JSON, in time order", "dump [options] PATH...", about, table, run};
