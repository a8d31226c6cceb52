/* SPDX-License-Identifier: MIT */
/* stormlog-analyze dump PATH: every event as one JSON line, in time order over all processes of the run. */
#include <stdlib.h>

#include "analyzer/base/memory.h"
#include "analyzer/commands/native.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/verb_rights.h"
#include "analyzer/base/json.h"

struct settings {
	const char *run;
};

#define INTO struct settings
static const struct sl_option table[] = {
	SL_OPTION_RUN(run),
	{"--json", 0, NULL, "one JSON object a line, which is what it prints in any case"},
	{0},
};

struct source {
	struct sl_trace *trace;
	struct sl_order *order;
	const struct sl_item *item; /* the next event */
	uint64_t unix_ns;
};

/* Goes to the next event; skips samples. */
static void step(struct source *source)
{
	do
		source->item = sl_order_next(source->order);
	while (source->item && source->item->kind != SL_ITEM_EVENT);
	if (source->item)
		source->unix_ns = sl_header_unix(&source->trace->header, source->item->event->time_ns);
}

static void put(struct sl_json *j, const struct source *source)
{
	const struct sl_event *event = source->item->event;
	const struct sl_hook *hook = source->item->hook;
	const struct sl_header *header = &source->trace->header;
	const struct sl_thread *thread = sl_defs_thread(&source->trace->defs, source->item->thread);
	bool in_flight = event->flags & SL_FLAG_in_flight, before = hook && hook->stamped_before;
	uint64_t begin = before || in_flight ? source->unix_ns : source->unix_ns - event->duration_ns;

	sl_json_object(j, NULL);
	sl_json_uint(j, "t0_ns", begin);
	if (in_flight)
		sl_json_null(j, "t1_ns");
	else
		sl_json_uint(j, "t1_ns", begin + event->duration_ns);
	sl_json_known(j, "rank", header->rank);
	sl_json_int(j, "pid", header->pid);
	sl_json_int(j, "thread", thread && thread->tid ? thread->tid : (int64_t)source->item->thread);
	sl_json_string(j, "api", hook ? hook->name : NULL);
	sl_json_string(j, "verb", hook ? sl_event_verbs[hook->verb].name : NULL);
	sl_json_string(j, "kind", event->kind && event->kind < SL_KIND_COUNT ? sl_event_kinds[event->kind].name : NULL);
	sl_json_nonzero(j, "address", event->address);
	sl_json_nonzero(j, "bytes", event->bytes);
	sl_json_known(j, "device", event->device);
	sl_json_nonzero(j, "stream", event->stream);
	if (event->flags &
	    (SL_FLAG_in_flight | SL_FLAG_abandoned)) /* it never returned, or was left by longjmp, exception or cancellation */
		sl_json_null(j, "result");
	else
		sl_json_int(j, "result", event->result);
	if (event->python || event->native) {
		struct sl_stack_frame frames[SL_STACK_MAX];
		unsigned count = sl_stacks_resolve(frames, &source->trace->defs, NULL, sl_stack_of(event));

		sl_stacks_write(j, frames, count);
	} else {
		sl_json_null(j, "stack");
	}
	sl_json_string(j, "label", event->label ? sl_defs_text(&source->trace->defs, event->label) : NULL);
	sl_json_known(j, "step", sl_item_step(source->item, &source->trace->defs));
	sl_json_end(j);
	sl_json_newline(j);
}

/* Processes are few and events many: looks at every process to find the earliest. */
static struct source *earliest(struct source *sources, unsigned count)
{
	struct source *first = NULL;

	for (unsigned i = 0; i < count; i++)
		if (sources[i].item && (!first || sources[i].unix_ns < first->unix_ns))
			first = &sources[i];
	return first;
}

/* run: as sl_native_choose gives it. */
static unsigned open_sources(struct source *sources, const struct sl_images *images, int run)
{
	unsigned count = 0;

	for (unsigned i = 0; i < images->image_count; i++) {
		struct sl_damage damage = {0};

		if (run >= 0 && images->run_of[i] != (unsigned)run)
			continue;
		sources[count].trace = sl_trace_open(&images->images[i], &damage);
		sl_damage_print(&damage);
		sl_damage_free(&damage);
		if (!sources[count].trace)
			continue;
		sources[count].order = sl_order_new(sources[count].trace);
		step(&sources[count++]);
	}
	return count;
}

static bool dump(const struct sl_images *images, int run)
{
	struct source *sources = sl_memory_must(calloc(images->image_count + 1, sizeof(*sources))), *next;
	struct sl_json *j = sl_json_new(stdout, SL_JSON_COMPACT);
	unsigned count;

	count = open_sources(sources, images, run);
	while ((next = earliest(sources, count))) {
		put(j, next);
		step(next);
	}
	sl_json_close(j);
	for (unsigned i = 0; i < count; i++) {
		sl_damage_print(&sources[i].trace->damage);
		sl_order_free(sources[i].order);
		sl_trace_close(sources[i].trace);
	}
	free(sources);
	return count > 0;
}

static const char about[] = "Every event as a line of JSON, in time order over all processes of the run.";

static int run(struct sl_arguments *parsed)
{
	struct sl_images images = {0};
	struct settings settings = {0};
	int status = sl_arguments_parse(parsed, NULL, &settings);

	if (status < 0)
		sl_verb_rights(&(struct sl_rights){.inputs = parsed->paths});
	if (status < 0)
		status = sl_native_images(&images, parsed->paths);
	if (status < 0) {
		int run = sl_native_choose(&images, settings.run);

		status = run < -1 ? SL_EXIT_USAGE : dump(&images, run) ? SL_EXIT_FINE : SL_EXIT_UNREADABLE;
	}
	sl_images_free(&images);
	return status;
}

const struct sl_command sl_command_dump = {
	"dump", "every event as a line of JSON, in time order", "dump [options] PATH...", about, table, run};
