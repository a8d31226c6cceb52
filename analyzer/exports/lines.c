/* SPDX-License-Identifier: MIT */
/* csv and ndjson: one line per event with the same columns; unknown is empty or null. */
#include "analyzer/exports/export.h"
#include "analyzer/base/escape.h"

static void put_text(FILE *out, const char *text)
{
	sl_escape_put(out, SL_ESCAPE_CSV, text ? text : "");
}

static void put_number(FILE *out, bool known, uint64_t value)
{
	fputc(',', out);
	if (known)
		fprintf(out, "%llu", (unsigned long long)value);
}

static void put_signed(FILE *out, bool known, int64_t value)
{
	fputc(',', out);
	if (known)
		fprintf(out, "%lld", (long long)value);
}

#define COLUMNS "t0_ns,t1_ns,rank,pid,thread,api,verb,kind,address,bytes,device,stream,result,label,library,where,step\r\n"

static bool run_csv(struct sl_export_job *job)
{
	FILE *out = job->out;
	const struct sl_where *where;
	struct sl_merge_process *p;
	struct sl_event_view view;

	fputs(COLUMNS, out);
	while ((p = sl_merge_next(job->merge)) && !ferror(out)) {
		if (p->item->kind != SL_ITEM_EVENT)
			continue;
		sl_merge_view(&view, p);
		where = sl_merge_place(job->merge, p);
		fprintf(out, "%llu", (unsigned long long)view.begin_ns);
		put_number(out, view.end_ns, view.end_ns);
		put_signed(out, view.rank >= 0, view.rank);
		put_signed(out, true, view.pid);
		put_signed(out, true, view.tid);
		for (unsigned i = 0; i < 3; i++) {
			fputc(',', out);
			put_text(out, i == 0 ? view.api : i == 1 ? view.verb : view.kind);
		}
		put_number(out, view.event->address, view.event->address);
		put_number(out, view.event->bytes, view.event->bytes);
		put_signed(out, view.event->device >= 0, view.event->device);
		put_number(out, view.event->stream, view.event->stream);
		put_signed(out, view.returned, view.event->result);
		for (unsigned i = 0; i < 3; i++) {
			fputc(',', out);
			put_text(out, i == 0 ? view.label : i == 1 ? where->library : where->line);
		}
		put_signed(out, view.step >= 0, view.step);
		fputs("\r\n", out);
	}
	return !ferror(out);
}

/* Each row names its format first. */
static void begin_row(struct sl_json *j, const char *type)
{
	sl_json_object(j, NULL);
	sl_json_uint(j, "stormlog", 1);
	sl_json_string(j, "type", type);
}

static void put_sample(struct sl_json *j, const struct sl_merge_process *p)
{
	const struct sl_sample *s = &p->item->sample;

	begin_row(j, "sample");
	sl_json_uint(j, "t0_ns", p->unix_ns);
	sl_json_known(j, "rank", p->process.trace->header.rank);
	sl_json_int(j, "pid", p->process.trace->header.pid);
	sl_json_known(j, "device", s->device);
	sl_json_known_uint(j, "used_bytes", s->used_bytes);
	sl_json_known_uint(j, "free_bytes", s->free_bytes);
	sl_json_known_uint(j, "total_bytes", s->total_bytes);
	sl_json_known_uint(j, "rss_bytes", s->rss_bytes);
	sl_json_end(j);
	sl_json_newline(j);
}

/* Writes the members that forms in JSON share, t0_ns to result. */
static void merge_put(struct sl_json *j, const struct sl_event_view *view)
{
	sl_json_uint(j, "t0_ns", view->begin_ns);
	sl_json_nonzero(j, "t1_ns", view->end_ns);
	sl_json_known(j, "rank", view->rank);
	sl_json_int(j, "pid", view->pid);
	sl_json_int(j, "thread", view->tid);
	sl_json_string(j, "api", view->api);
	sl_json_string(j, "verb", view->verb);
	sl_json_string(j, "kind", view->kind);
	sl_json_nonzero(j, "address", view->event->address);
	sl_json_nonzero(j, "bytes", view->event->bytes);
	sl_json_known(j, "device", view->event->device);
	sl_json_nonzero(j, "stream", view->event->stream);
	if (view->returned)
		sl_json_int(j, "result", view->event->result);
	else
		sl_json_null(j, "result");
}

static void put_event(struct sl_json *j, struct sl_merge_process *p, struct sl_merge *merge)
{
	const struct sl_where *where = sl_merge_place(merge, p);
	struct sl_event_view view;

	sl_merge_view(&view, p);
	begin_row(j, "event");
	merge_put(j, &view);
	sl_json_string(j, "label", view.label);
	sl_json_string(j, "library", where->library);
	sl_json_string(j, "where", where->line[0] ? where->line : NULL);
	sl_json_known(j, "step", view.step);
	sl_json_end(j);
	sl_json_newline(j);
}

/* The row of dump: it has the whole stack. */
static void put_call(struct sl_json *j, struct sl_merge_process *p, struct sl_merge *merge)
{
	const struct sl_event *event = p->item->event;
	struct sl_stack_frame frames[SL_STACK_MAX];
	struct sl_event_view view;

	(void)merge;
	sl_merge_view(&view, p);
	sl_json_object(j, NULL);
	merge_put(j, &view);
	if (event->python || event->native)
		sl_stacks_write(j, frames, sl_stacks_resolve(frames, &p->process.trace->defs, NULL, sl_stack_of(event)));
	else
		sl_json_null(j, "stack");
	sl_json_string(j, "label", view.label);
	sl_json_known(j, "step", view.step);
	sl_json_end(j);
	sl_json_newline(j);
}

/* sample: NULL leaves samples out. */
static bool run_rows(struct sl_export_job *job, void (*event)(struct sl_json *, struct sl_merge_process *, struct sl_merge *),
		     void (*sample)(struct sl_json *, const struct sl_merge_process *))
{
	struct sl_json *j = sl_json_new(job->out, SL_JSON_COMPACT);
	struct sl_merge_process *p;

	while ((p = sl_merge_next(job->merge)) && !ferror(job->out)) {
		if (p->item->kind == SL_ITEM_EVENT)
			event(j, p, job->merge);
		else if (p->item->kind == SL_ITEM_SAMPLE && sample)
			sample(j, p);
	}
	return sl_json_close(j);
}

static bool run_ndjson(struct sl_export_job *job)
{
	return run_rows(job, put_event, put_sample);
}

static bool run_dump(struct sl_export_job *job)
{
	return run_rows(job, put_call, NULL);
}

const struct sl_export sl_export_dump = {.name = "dump", .run = run_dump}; /* a verb, so in no list of formats */
const struct sl_export sl_export_csv = {
	.name = "csv", .summary = "a line an event, for spreadsheets", .places = true, .run = run_csv};
const struct sl_export sl_export_ndjson = {.name = "ndjson",
					   .summary = "a line of JSON an event or sample, for DuckDB, pandas, jq",
					   .places = true,
					   .run = run_ndjson};
