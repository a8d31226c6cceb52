/* SPDX-License-Identifier: MIT */
/* csv and ndjson: one line per event with the same columns; unknown is empty or null. */
#include "analyzer/exports/export.h"

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

/* Ends the row. */
static void put_whole(struct sl_json *j, const struct sl_event_view *view, const struct sl_where *where)
{
	merge_put(j, view);
	sl_json_string(j, "label", view->label);
	sl_json_string(j, "library", where->library);
	sl_json_string(j, "where", where->line[0] ? where->line : NULL);
	sl_json_known(j, "step", view->step);
	sl_json_end(j);
	sl_json_newline(j);
}

static void put_event(struct sl_json *j, struct sl_merge_process *p, struct sl_merge *merge)
{
	struct sl_event_view view;

	sl_merge_view(&view, p);
	begin_row(j, "event");
	put_whole(j, &view, sl_merge_place(merge, p));
}

static void put_cells(struct sl_json *j, struct sl_merge_process *p, struct sl_merge *merge)
{
	struct sl_event_view view;

	sl_merge_view(&view, p);
	sl_json_object(j, NULL);
	put_whole(j, &view, sl_merge_place(merge, p));
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
static bool run_rows(struct sl_export_job *job, enum sl_json_style style,
		     void (*event)(struct sl_json *, struct sl_merge_process *, struct sl_merge *),
		     void (*sample)(struct sl_json *, const struct sl_merge_process *))
{
	struct sl_json *j = sl_json_new(job->out, style);
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
	return run_rows(job, SL_JSON_COMPACT, put_event, put_sample);
}

static bool run_csv(struct sl_export_job *job)
{
	const struct sl_event none = {0};
	struct sl_json *head = sl_json_new(job->out, SL_JSON_CSV_HEAD);

	sl_json_object(head, NULL);
	put_whole(head, &(struct sl_event_view){.event = &none}, &(struct sl_where){.line = ""});
	return sl_json_close(head) && run_rows(job, SL_JSON_CSV, put_cells, NULL);
}

static bool run_dump(struct sl_export_job *job)
{
	return run_rows(job, SL_JSON_COMPACT, put_call, NULL);
}

const struct sl_export sl_export_dump = {.name = "dump", .run = run_dump}; /* a verb, so in no list of formats */
const struct sl_export sl_export_csv = {
	.name = "csv", .summary = "a line an event, for spreadsheets", .places = true, .run = run_csv};
const struct sl_export sl_export_ndjson = {.name = "ndjson",
					   .summary = "a line of JSON an event or sample, for DuckDB, pandas, jq",
					   .places = true,
					   .run = run_ndjson};
