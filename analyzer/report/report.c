/* SPDX-License-Identifier: MIT */
#include "analyzer/report/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void sl_report_warn(struct sl_report *report, const char *format, ...)
{
	va_list args;
	char *line;

	va_start(args, format);
	if (vasprintf(&line, format, args) < 0)
		abort();
	va_end(args);
	report->warnings.item = sl_arena_grow(report->warnings.item, &report->warnings.capacity, report->warnings.count,
					      sizeof(*report->warnings.item));
	report->warnings.item[report->warnings.count++] = line;
}

char *sl_report_text(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		abort();
	va_end(args);
	return text;
}

void sl_report_find(struct sl_report *report, const struct sl_finding *finding)
{
	report->findings.item = sl_arena_grow(report->findings.item, &report->findings.capacity, report->findings.count,
					      sizeof(*report->findings.item));
	report->findings.item[report->findings.count++] = *finding;
}

bool sl_process_lived(const struct sl_process *process, uint64_t unix_ns)
{
	uint64_t silent = process->trace->status == SL_STATUS_COMPLETED ? 0 : 1000000000;

	return unix_ns >= process->started_unix_ns && unix_ns <= process->ended_unix_ns + silent;
}

struct sl_symbols *sl_process_symbols(struct sl_process *process)
{
	if (!process->symbols)
		process->symbols = sl_symbols_new();
	return process->symbols;
}

unsigned sl_process_stack(struct sl_process *process, struct sl_stack_frame *frames, uint32_t python, uint32_t native,
			  uint64_t caller)
{
	return sl_stacks_resolve(frames, &process->trace->defs, sl_process_symbols(process), python, native, caller);
}

void sl_report_free(struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];

		sl_trace_close(process->trace);
		sl_symbols_free(process->symbols);
		free(process->session_id);
		free(process->leaks.item);
		free(process->growth.item);
		free(process->heuristics.item);
		for (size_t k = 0; process->accounts && k < process->model->ooms.count; k++) {
			free(process->accounts[k].cause_text);
			free(process->accounts[k].advice);
		}
		free(process->accounts);
		sl_model_free(process->model);
	}
	for (unsigned i = 0; i < report->device_count; i++)
		free(report->devices[i].processes);
	for (size_t i = 0; i < report->warnings.count; i++)
		free(report->warnings.item[i]);
	free(report->warnings.item);
	for (size_t i = 0; i < report->findings.count; i++) {
		free(report->findings.item[i].text);
		free(report->findings.item[i].advice);
	}
	free(report->findings.item);
	free(report->devices);
	free(report->processes);
	sl_images_free(&report->images);
}
