/* SPDX-License-Identifier: MIT */
/* collapsed and speedscope: the holders of memory, as flame graphs. */

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/exports/export.h"

static bool run_collapsed(struct sl_export_job *job)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	char name[SL_STACKS_NAME_BYTES];

	sl_export_replay(job->merge);
	for (unsigned i = 0; i < job->merge->count; i++) {
		struct sl_merge_process *p = &job->merge->processes[i];
		uint64_t bytes;

		for (const struct sl_site *site = NULL;
		     (site = sl_owners_next(&p->process, SL_DEVICE_ANY, job->weigh, site, &bytes));) {
			unsigned count = sl_process_stack(&p->process, frames, site->stack);

			count = sl_stacks_fold(frames, count); /* removes the interpreter's own frames, as flame does */
			sl_process_who(name, &p->process);
			sl_escape_put(job->out, SL_ESCAPE_FRAME, name);
			for (unsigned f = count; f--;) {
				sl_stacks_describe(name, sizeof(name), &frames[f]);
				fputc(';', job->out);
				sl_escape_put(job->out, SL_ESCAPE_FRAME, name);
			}
			fputc(';', job->out);
			sl_escape_put(job->out, SL_ESCAPE_FRAME, sl_model_library(p->process.model, site));
			fprintf(job->out, " %llu\n", (unsigned long long)bytes);
		}
	}
	return !ferror(job->out);
}

/* ---- speedscope: profiles share one list of frames; frame numbers of sites stay in memory, events do not */

struct sample {
	uint64_t bytes;
	unsigned process, first, count; /* process: index; first, count: a range of `numbers` */
};

struct scope {
	struct sl_map frames; /* "name\nfile" -> number + 1 */
	SL_VECTOR(uint32_t) numbers;
	SL_VECTOR(struct sample) samples;
};

static uint32_t number_of(struct scope *scope, struct sl_json *j, const struct sl_stack_frame *frame, const char *name)
{
	char *key = sl_memory_print("%s\n%s", name, frame && frame->file ? frame->file : "");
	uintptr_t *at = sl_map_at(&scope->frames, key);

	free(key);
	if (*at)
		return (uint32_t)*at - 1;
	*at = scope->frames.count;
	sl_json_object(j, NULL);
	sl_json_string(j, "name", name);
	if (frame && frame->file)
		sl_json_string(j, "file", frame->file);
	if (frame && frame->line)
		sl_json_uint(j, "line", frame->line);
	sl_json_end(j);
	return (uint32_t)*at - 1;
}

static void push(struct scope *scope, uint32_t number)
{
	*SL_PUSH(&scope->numbers) = number;
	scope->samples.item[scope->samples.count - 1].count++;
}

static void add_site(struct scope *scope, struct sl_json *j, struct sl_merge_process *p, const struct sl_site *site, uint64_t bytes)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(&p->process, frames, site->stack);
	char name[SL_STACKS_NAME_BYTES];

	count = sl_stacks_fold(frames, count);
	*SL_PUSH(&scope->samples) = (struct sample){.bytes = bytes, .process = p->index, .first = (unsigned)scope->numbers.count};
	for (unsigned f = count; f--;) {
		sl_stacks_describe(name, sizeof(name), &frames[f]);
		push(scope, number_of(scope, j, &frames[f], name));
	}
	push(scope, number_of(scope, j, NULL, sl_model_library(p->process.model, site)));
}

/* first: the process's first sample.  Returns the next process's, since samples are added process by process. */
static size_t put_profile(struct sl_json *j, const struct scope *scope, const struct sl_merge_process *p, size_t first)
{
	char name[64];
	uint64_t total = 0;
	size_t end = first;

	for (; end < scope->samples.count && scope->samples.item[end].process == p->index; end++)
		total += scope->samples.item[end].bytes;
	sl_process_who(name, &p->process);
	sl_json_object(j, NULL);
	sl_json_string(j, "type", "sampled");
	sl_json_string(j, "name", name);
	sl_json_string(j, "unit", "bytes");
	sl_json_uint(j, "startValue", 0);
	sl_json_uint(j, "endValue", total);
	sl_json_array(j, "samples");
	for (size_t i = first; i < end; i++) {
		const struct sample *s = &scope->samples.item[i];

		sl_json_array(j, NULL);
		for (unsigned k = 0; k < s->count; k++)
			sl_json_uint(j, NULL, scope->numbers.item[s->first + k]);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_array(j, "weights");
	for (size_t i = first; i < end; i++)
		sl_json_uint(j, NULL, scope->samples.item[i].bytes);
	sl_json_end(j);
	sl_json_end(j);
	return end;
}

#define SCHEMA	 "https://www.speedscope.app/file-format-schema.json"
#define EXPORTER "stormlog "

static bool run_speedscope(struct sl_export_job *job)
{
	struct sl_json *j = sl_json_new(job->out, SL_JSON_COMPACT);
	struct scope scope = {0};
	size_t next = 0;

	sl_export_replay(job->merge);
	sl_json_object(j, NULL);
	sl_json_string(j, "$schema", SCHEMA);
	sl_json_string(j, "exporter", EXPORTER SL_VERSION);
	sl_json_string(j, "name", "GPU memory");
	sl_json_object(j, "shared");
	sl_json_array(j, "frames");
	for (unsigned i = 0; i < job->merge->count; i++) {
		struct sl_merge_process *p = &job->merge->processes[i];
		uint64_t bytes;

		for (const struct sl_site *site = NULL;
		     (site = sl_owners_next(&p->process, SL_DEVICE_ANY, job->weigh, site, &bytes));)
			add_site(&scope, j, p, site, bytes);
	}
	sl_json_end(j);
	sl_json_end(j);
	sl_json_array(j, "profiles");
	for (unsigned i = 0; i < job->merge->count; i++)
		next = put_profile(j, &scope, &job->merge->processes[i], next);
	sl_json_end(j);
	sl_json_end(j);
	sl_json_newline(j);
	sl_map_free(&scope.frames);
	free(scope.numbers.item);
	free(scope.samples.item);
	return sl_json_close(j);
}

const struct sl_export sl_export_collapsed = {
	.name = "collapsed", .summary = "collapsed stacks, for flame graph tools", .models = true, .run = run_collapsed};
const struct sl_export sl_export_speedscope = {
	.name = "speedscope", .summary = "https://www.speedscope.app", .models = true, .run = run_speedscope};
