/* SPDX-License-Identifier: MIT */
#include "analyzer/report/report.h"

#include "analyzer/answer/answer.h"
#include "analyzer/base/format.h"
#include "analyzer/base/map.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/model/replay/replay.h"
#include "analyzer/source/source.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void sl_report_warn(struct sl_report *report, const char *format, ...)
{
	va_list args;
	char *line;

	va_start(args, format);
	line = sl_memory_vprint(format, args);
	va_end(args);
	*SL_PUSH(&report->warnings) = line;
}

void sl_report_warn_of_symbols(struct sl_report *report)
{
	const struct sl_symbols_missed *missed = NULL;
	unsigned count = sl_symbols_missed(report->symbols, report->missed_said, &missed), absent = 0;
	const char *first = NULL;

	for (; report->missed_said < count; report->missed_said++) {
		const struct sl_symbols_missed *one = &missed[report->missed_said];

		if (!one->absent)
			sl_report_warn(report, "no names of functions in %s: %s", one->path, one->why);
		else if (!absent++)
			first = one->path;
	}
	if (absent > 1)
		sl_report_warn(report, "no names of functions in %s and %u more: they are not on this machine", first, absent - 1);
	else if (absent)
		sl_report_warn(report, "no names of functions in %s: it is not on this machine", first);
}

void sl_report_find(struct sl_report *report, const struct sl_finding *finding)
{
	*SL_PUSH(&report->findings) = *finding;
}

bool sl_process_lived(const struct sl_process *process, uint64_t unix_ns)
{
	uint64_t silent = process->trace->status == SL_STATUS_COMPLETED ? 0 : 1000000000;

	return unix_ns >= process->started_unix_ns && unix_ns <= process->ended_unix_ns + silent;
}

unsigned sl_process_stack(struct sl_process *process, struct sl_stack_frame *frames, struct sl_stack stack)
{
	unsigned count = sl_stacks_resolve(frames, &process->trace->defs, process->symbols, stack);
	uint32_t pass = process->model ? sl_idmap_get(&process->model->passes, stack.python, 0) : 0;
	struct sl_stack_frame outer[SL_STACK_MAX];
	unsigned more = 0;

	for (unsigned i = 0; i < count && pass; i++)
		pass = sl_stacks_is_own(&frames[i]) ? 0 : pass;
	if (pass)
		more = sl_stacks_resolve(outer, &process->trace->defs, NULL, (struct sl_stack){.python = pass});
	more = more < SL_STACK_MAX - count ? more : SL_STACK_MAX - count;
	memcpy(frames + count, outer, more * sizeof(*outer));
	return count + more;
}

bool sl_process_calls(struct sl_process *process, struct sl_stack stack, const char *function)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, stack);

	for (unsigned i = 0; i < count; i++)
		if (!frames[i].python && frames[i].function && strstr(frames[i].function, function))
			return true;
	return false;
}

unsigned sl_process_own(struct sl_process *process, struct sl_stack_frame *frames, struct sl_stack stack)
{
	unsigned count = sl_process_stack(process, frames, stack), own = 0;

	for (unsigned i = 0; i < count; i++)
		if (frames[i].python && frames[i].own && frames[i].file && frames[i].line)
			frames[own++] = frames[i];
	return own;
}

char *sl_report_session(const struct sl_trace *trace)
{
	const struct sl_header *header = &trace->header;
	char *session, rank[32] = "00000", image[16] = "";
	const char *dash = strstr(trace->name, ".msgpack");

	if (header->rank >= 0)
		snprintf(rank, sizeof(rank), "%05lld", (long long)header->rank);
	/* a second image of the same pid (exec) is rank-R-PID-2 */
	if (dash) {
		const char *base = sl_paths_name(trace->name);
		unsigned parts[3];

		if (sscanf(base, "rank-%u-%u-%u", &parts[0], &parts[1], &parts[2]) == 3)
			snprintf(image, sizeof(image), "-%u", parts[2]);
	}
	session = sl_memory_print("%s-%s-%lld%s", header->run_id ? header->run_id : "run", rank, (long long)header->pid, image);
	return session;
}

const char *sl_process_who(char *out, const struct sl_process *process)
{
	const struct sl_header *header = &process->trace->header;

	if (!process->parent)
		return sl_header_who(out, header);
	snprintf(out, SL_FORMAT_BYTES, "pid %lld of rank %lld", (long long)header->pid, (long long)header->rank);
	return out;
}

/* What names a process on its host; a number that an ended process had may be used again. */
static char *number_key(const struct sl_header *header, int64_t pid)
{
	return sl_memory_print("%lld %s", (long long)pid, header->host ? header->host : "");
}

void sl_report_find_parents(struct sl_report *report)
{
	struct sl_map numbers = {0};

	for (unsigned i = 0; i < report->process_count; i++) {
		char *key = number_key(&report->processes[i].trace->header, report->processes[i].trace->header.pid);

		*sl_map_at(&numbers, key) = i + 1;
		free(key);
	}
	for (unsigned i = 0; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];
		const struct sl_header *header = &process->trace->header;
		char *key = number_key(header, header->ppid);
		uintptr_t at = sl_map_find(&numbers, key);
		const struct sl_process *parent = at ? &report->processes[at - 1] : NULL;

		free(key);
		if (parent && parent != process && header->rank >= 0 && parent->trace->header.rank == header->rank)
			process->parent = parent;
	}
	sl_map_free(&numbers);
}

void sl_report_free_devices(struct sl_report *report)
{
	for (unsigned i = 0; i < report->device_count; i++)
		free(report->devices[i].users);
	free(report->devices);
}

void sl_process_free(struct sl_process *process)
{
	sl_places_free(process->places);
	sl_roles_free(process->roles);
	free(process->session_id);
	free(process->leaks.item);
	free(process->growth.item);
	free(process->heuristics.item);
	free(process->leaks_by_line.item);
	for (size_t k = 0; process->accounts && k < process->model->ooms.count; k++) {
		free(process->accounts[k].cause_text);
		free(process->accounts[k].advice);
	}
	free(process->accounts);
	free(process->changes);
	sl_replay_free(process->model);
	sl_trace_close(process->trace);
}

void sl_report_free(struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++)
		sl_process_free(&report->processes[i]);
	sl_report_free_devices(report);
	for (size_t i = 0; i < report->warnings.count; i++)
		free(report->warnings.item[i]);
	free(report->warnings.item);
	for (size_t i = 0; i < report->findings.count; i++) {
		free(report->findings.item[i].text);
		free(report->findings.item[i].advice);
	}
	free(report->findings.item);
	free(report->processes);
	SL_DROP(&report->unread);
	sl_places_free(report->places);
	sl_symbols_free(report->symbols);
	sl_answers_free(report->answers);
	sl_source_free(report->source);
	if (report->telemetry)
		sl_telemetry_free(report->telemetry);
	sl_images_free(&report->images);
}

struct sl_account *sl_process_account(const struct sl_process *process, const struct sl_oom *oom)
{
	return &process->accounts[oom - process->model->ooms.item];
}

const struct sl_oom *sl_process_first_oom(const struct sl_process *process)
{
	const struct sl_oom *first = NULL;

	for (int cured = 0; cured < 2 && !first; cured++)
		for (size_t k = 0; k < process->model->ooms.count; k++) {
			const struct sl_oom *oom = &process->model->ooms.item[k];

			if (sl_oom_got_over(oom) == cured && !(process->accounts && process->accounts[k].told_later) &&
			    (!first || oom->time_ns < first->time_ns))
				first = oom;
		}
	return first;
}

const struct sl_oom *sl_report_first_oom(const struct sl_report *report, const struct sl_process **process)
{
	const struct sl_oom *first = NULL;

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *one = &report->processes[i];
		const struct sl_oom *oom = sl_process_first_oom(one);

		if (!oom || (first && (sl_oom_got_over(oom) > sl_oom_got_over(first) ||
				       (sl_oom_got_over(oom) == sl_oom_got_over(first) &&
					sl_process_unix(one, oom->time_ns) >= sl_process_unix(*process, first->time_ns)))))
			continue;
		first = oom;
		*process = one;
	}
	return first;
}

unsigned sl_report_recorded(const struct sl_report *report)
{
	unsigned count = 0;

	for (unsigned i = 0; i < report->process_count; i++)
		count += report->processes[i].model->recording.follows_process;
	return count;
}

bool sl_report_has_ended(const struct sl_report *report, enum sl_ended how)
{
	for (unsigned i = 0; i < report->process_count; i++)
		if (report->processes[i].model->recording.follows_process && sl_trace_ended(report->processes[i].trace) == how)
			return true;
	return false;
}

int64_t sl_report_world(const struct sl_report *report)
{
	int64_t world = -1;

	for (unsigned i = 0; i < report->process_count; i++)
		if (report->processes[i].trace->header.world_size > world)
			world = report->processes[i].trace->header.world_size;
	return world;
}
