/* SPDX-License-Identifier: MIT */
/* prometheus: a file for node_exporter's textfile collector.  No time stamps, one HELP and TYPE a family. */

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/exports/export.h"
#include "analyzer/report/devices.h"

/* The session is a label too: after exec one pid has two sessions. */
static void put_labels(FILE *out, const char *family, const struct sl_merge_process *p, int device, const char *key,
		       const char *value)
{
	const struct sl_header *header = &p->process.trace->header;
	char *session = sl_report_session(p->process.trace);

	sl_escape_print(out, "%s{host=\"", family);
	sl_escape_put(out, SL_ESCAPE_METRIC, header->host ? header->host : "");
	sl_escape_print(out, "\",run=\"");
	sl_escape_put(out, SL_ESCAPE_METRIC, header->run_id ? header->run_id : "");
	fputs("\",session=\"", out);
	sl_escape_put(out, SL_ESCAPE_METRIC, session);
	free(session);
	sl_escape_print(out, "\",pid=\"%lld\"", (long long)header->pid);
	if (header->rank >= 0)
		sl_escape_print(out, ",rank=\"%lld\"", (long long)header->rank);
	if (device >= 0)
		sl_escape_print(out, ",device=\"%d\"", device);
	if (key) {
		sl_escape_print(out, ",%s=\"", key);
		sl_escape_put(out, SL_ESCAPE_METRIC, value);
		fputc('"', out);
	}
	fputs("} ", out);
}

enum of { LIVE, PEAK, ALLOCATIONS, FAILED };
static const struct {
	const char *name, *type, *help;
} of_kind[] = {
	{"stormlog_memory_live_bytes", "gauge", "Held at the end of the trace."},
	{"stormlog_memory_peak_bytes", "gauge", "Most held at once."},
	{"stormlog_memory_allocations_total", "counter", "Successful allocations."},
	{"stormlog_memory_failed_allocations_total", "counter", "Failed allocations."},
};

static uint64_t number(const struct sl_row *row, enum of of)
{
	return of == LIVE	   ? row->live_bytes
	       : of == PEAK	   ? row->peak_bytes
	       : of == ALLOCATIONS ? row->allocations
				   : row->failed_allocations;
}

static void put_family(FILE *out, const char *name, const char *type, const char *help)
{
	sl_escape_print(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_memory(struct sl_export_job *job, enum of of)
{
	put_family(job->out, of_kind[of].name, of_kind[of].type, of_kind[of].help);
	for (unsigned i = 0; i < job->merge->count; i++) {
		const struct sl_merge_process *p = &job->merge->processes[i];

		for (unsigned kind = 0; kind < SL_KIND_COUNT; kind++)
			for (int d = 0; d <= SL_DEVICES_MAX; d++) {
				const struct sl_row *row = sl_model_row(p->process.model, kind, d);

				if (!row->used || kind == SL_KIND_block)
					continue;
				put_labels(job->out, of_kind[of].name, p, d - 1, "kind", sl_event_kinds[kind].name);
				sl_escape_print(job->out, "%llu\n", (unsigned long long)number(row, of));
			}
	}
}

static void put_libraries(struct sl_export_job *job)
{
	static const char name[] = "stormlog_library_peak_bytes";

	put_family(job->out, name, "gauge", "Most a library held at once.");
	for (unsigned i = 0; i < job->merge->count; i++) {
		const struct sl_merge_process *p = &job->merge->processes[i];
		const struct sl_model *model = p->process.model;

		for (size_t k = 0; k < model->holders.count; k++) {
			const struct sl_holder *holder = &model->holders.item[k];

			/* Blocks of PyTorch lie inside memory that c10 asked for, and are counted there. */
			if (!holder->peak_bytes)
				continue;
			put_labels(job->out, name, p, holder->device, "library", model->libraries.item[holder->library]);
			sl_escape_print(job->out, "%llu\n", (unsigned long long)holder->peak_bytes);
		}
	}
}

static void put_process(struct sl_export_job *job, const char *name, const char *help, bool ooms)
{
	put_family(job->out, name, "counter", help);
	for (unsigned i = 0; i < job->merge->count; i++) {
		const struct sl_merge_process *p = &job->merge->processes[i];

		put_labels(job->out, name, p, -1, NULL, NULL);
		sl_escape_print(job->out, "%llu\n",
				(unsigned long long)(ooms ? p->process.model->ooms_total : p->process.model->events));
	}
}

/* Sums per device over the processes: memory of another recorded process is not hidden. */
static void join_devices(struct sl_merge *merge)
{
	struct sl_report report = {.process_count = merge->count};

	report.processes = sl_memory_must(calloc(merge->count + 1, sizeof(*report.processes)));
	for (unsigned i = 0; i < merge->count; i++) {
		report.processes[i] = merge->processes[i].process;
		report.processes[i].ended_unix_ns = sl_process_unix(&report.processes[i], report.processes[i].model->now_ns);
	}
	sl_devices_join(&report);
	sl_report_free_devices(&report);
	free(report.processes);
}

static void put_hidden(struct sl_export_job *job)
{
	static const char name[] = "stormlog_device_hidden_peak_bytes";

	join_devices(job->merge);
	put_family(job->out, name, "gauge", "Most used on the device beyond what recorded processes held, as this one saw it.");
	for (unsigned i = 0; i < job->merge->count; i++)
		for (unsigned d = 1; d <= SL_DEVICES_MAX; d++) {
			const struct sl_device_state *device = job->merge->processes[i].process.model->devices[d];

			if (!device || device->hidden_peak_bytes == SL_UNKNOWN)
				continue;
			put_labels(job->out, name, &job->merge->processes[i], (int)d - 1, NULL, NULL);
			sl_escape_print(job->out, "%llu\n", (unsigned long long)device->hidden_peak_bytes);
		}
}

static bool run(struct sl_export_job *job)
{
	sl_export_replay(job->merge);
	for (enum of of = LIVE; of <= FAILED; of++)
		put_memory(job, of);
	put_libraries(job);
	put_hidden(job);
	put_process(job, "stormlog_out_of_memory_total", "Calls that ran out of memory.", true);
	put_process(job, "stormlog_events_total", "Recorded events.", false);
	return !ferror(job->out);
}

const struct sl_export sl_export_prometheus = {
	.name = "prometheus", .summary = "a .prom file for node_exporter's textfile collector", .models = true, .run = run};
