/* SPDX-License-Identifier: MIT */
/*
 * Contexts of ranks on devices that belong to other ranks; each costs some hundred MiB there.  One line of a program makes many
 * of them, in every rank and on every device, and gets one finding.  Processes that no launcher numbered are taken for strays if
 * two of them at least used another's device before their own, and little of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/base/format.h"
#include "analyzer/base/map.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/vector.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/report.h"

struct stray {
	unsigned process;
	const struct sl_device_state *state;
	int owner; /* index of a process */
	struct sl_stack stack;
	char where[300];
};

struct strays {
	SL_VECTOR(struct stray) list;
};

static const char *text_or(const char *text)
{
	return text ? text : "";
}

static const char *defined(const struct sl_process *process, int ordinal)
{
	const struct sl_device *def = sl_defs_device(&process->trace->defs, ordinal);

	return def ? def->uuid : NULL;
}

/* How the processes of a host number its devices, where all that define one do it alike. */
struct numbering {
	const char *uuids[SL_DEVICES_MAX];
	bool differs;
};

struct numberings {
	struct sl_map hosts; /* index into list + 1 */
	SL_VECTOR(struct numbering) list;
};

static void find_numberings(const struct sl_report *report, struct numberings *numberings)
{
	for (unsigned i = 0; i < report->process_count; i++) {
		uintptr_t *at = sl_map_at(&numberings->hosts, text_or(report->processes[i].trace->header.host));
		struct numbering *of;

		if (!*at) {
			*SL_PUSH(&numberings->list) = (struct numbering){0};
			*at = numberings->list.count;
		}
		of = &numberings->list.item[*at - 1];
		for (int d = 0; d < SL_DEVICES_MAX; d++) {
			const char *uuid = defined(&report->processes[i], d);

			of->differs |= uuid && of->uuids[d] && strcmp(uuid, of->uuids[d]);
			of->uuids[d] = uuid ? uuid : of->uuids[d];
		}
	}
}

/*
 * The device's uuid by the process's own trace.  A process that only has a context there defines no device; then by the other
 * processes of its host, if all of them number the devices alike.
 */
static const char *uuid_of(struct numberings *numberings, const struct sl_process *process, int ordinal)
{
	const struct numbering *of;

	if (defined(process, ordinal))
		return defined(process, ordinal);
	of = &numberings->list.item[*sl_map_at(&numberings->hosts, text_or(process->trace->header.host)) - 1];
	return !of->differs && ordinal >= 0 && ordinal < SL_DEVICES_MAX ? of->uuids[ordinal] : NULL;
}

/* True: a rank, or a process that one started. */
static bool is_numbered(const struct sl_process *process)
{
	return process->trace->header.rank >= 0;
}

/* The device that it should use: its own, or that of the rank that started it.  NULL: none is known. */
static const char *own_uuid(struct numberings *numberings, const struct sl_process *process)
{
	const struct sl_process *whose = process->parent ? process->parent : process;
	const struct sl_device_state *home = sl_devices_home(whose);

	return home ? uuid_of(numberings, whose, home->device) : NULL;
}

/* The other process, a rank or not, whose own device it is; -1: nobody's, or the process's own. */
static int owner_of(const struct sl_report *report, unsigned process, const char *uuid)
{
	const char *host = text_or(report->processes[process].trace->header.host);

	for (unsigned i = 0; uuid && i < report->process_count; i++) {
		const struct sl_process *p = &report->processes[i];
		const struct sl_device_state *home =
			i != process && !p->parent && is_numbered(p) == is_numbered(&report->processes[process])
				? sl_devices_home(p)
				: NULL;
		const char *own = home ? defined(p, home->device) : NULL;

		if (own && !strcmp(own, uuid) && !strcmp(text_or(p->trace->header.host), host))
			return (int)i;
	}
	return -1;
}

/* The first place that asked for anything on the device; NULL: none. */
static const struct sl_track *first_there(const struct sl_process *process, const struct sl_device_state *state)
{
	const struct sl_track *first = NULL;

	for (size_t i = 0; i < process->model->tracks.count; i++) {
		const struct sl_track *track = &process->model->tracks.item[i];

		if (track->device == state->device && track->births && (!first || track->first_ns < first->first_ns))
			first = track;
	}
	return first;
}

/* True: the process used little of that device, and used it before its own. */
static bool is_forgetful(const struct sl_process *process, const struct sl_device_state *there, const struct sl_device_state *home)
{
	const struct sl_track *first = first_there(process, there), *own = first_there(process, home);

	return first && own && first->first_ns < own->first_ns && there->known_peak < home->known_peak / 4;
}

/* The first line that asked for anything there, else the line that made the context. */
static void take_place(struct sl_process *process, struct stray *stray)
{
	const struct sl_track *first = first_there(process, stray->state);

	stray->stack = first ? first->stack : stray->state->context_stack;
	sl_owners_line(process, stray->stack, 2, stray->where, sizeof(stray->where));
}

static uint64_t first_use(const struct sl_process *process, const struct sl_device_state *state)
{
	const struct sl_track *first = first_there(process, state);
	uint64_t made = state->context_made.time_ns;

	return first && (!made || first->first_ns < made) ? first->first_ns : made;
}

/* A device that was used before the process's own was used in the wrong order; otherwise the line names the wrong device. */
static const char *advice_for(const struct sl_process *process, const struct sl_device_state *there)
{
	const struct sl_device_state *home = sl_devices_home(process);
	uint64_t own = home ? first_use(process, home) : 0;

	return own && own < first_use(process, there)
		       ? "name the process's own device in that line, or set CUDA_VISIBLE_DEVICES"
		       : "call set_device(local_rank) before the first GPU call, or set CUDA_VISIBLE_DEVICES";
}

static void collect(struct sl_report *report, struct strays *strays)
{
	struct numberings numberings = {0};

	find_numberings(report, &numberings);
	for (unsigned i = 0; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];
		const struct sl_device_state *home = sl_devices_home(process);
		const char *own = own_uuid(&numberings, process);

		for (size_t d = 1; home && d < SL_COUNT(process->model->devices); d++) {
			struct stray one = {.process = i, .state = process->model->devices[d]};

			const char *uuid;

			if (!one.state || (!process->parent && one.state == home) ||
			    (!one.state->used && !one.state->context_made.time_ns))
				continue;
			uuid = uuid_of(&numberings, process, one.state->device);
			if (process->parent && (!own || !uuid || !strcmp(own, uuid)))
				continue;
			one.owner = owner_of(report, i, uuid);
			if (one.owner < 0 || (!is_numbered(process) && !is_forgetful(process, one.state, home)))
				continue;
			take_place(process, &one);
			*SL_PUSH(&strays->list) = one;
		}
	}
	sl_map_free(&numberings.hosts);
	free(numberings.list.item);
}

/* "rank 1, rank 2"; where there are many, only the first. */
static void say_ranks(char *out, size_t size, const struct sl_report *report, const struct strays *strays, const char *where)
{
	int last = -1;
	unsigned count = 0;
	size_t at = 0;
	char one[SL_FORMAT_BYTES];

	for (size_t i = 0; i < strays->list.count && at < size; i++) {
		int process = (int)strays->list.item[i].process;

		if (strcmp(strays->list.item[i].where, where) || process == last)
			continue;
		last = process;
		sl_process_who(one, &report->processes[process]);
		if (++count <= 4)
			at += (size_t)snprintf(out + at, size - at, "%s%s", count > 1 ? ", " : "", one);
		else if (count == 5)
			at += (size_t)snprintf(out + at, size - at, ", ...");
	}
}

/* All strays made by the same line as the first one. */
static void find(struct sl_report *report, const struct strays *strays, const struct stray *first)
{
	char who[100] = "", owner[SL_FORMAT_BYTES], whose[80], count[SL_FORMAT_BYTES];
	uint64_t bytes = 0, contexts = 0;
	bool one_device = true, many = false;
	unsigned number = 0;

	for (size_t i = 0; i < strays->list.count; i++) {
		const struct stray *stray = &strays->list.item[i];

		if (strcmp(stray->where, first->where))
			continue;
		bytes += stray->state->known_peak;
		contexts += stray->state->context_bytes;
		number++;
		one_device &= stray->owner == first->owner;
		many |= stray->process != first->process;
	}
	if (!many && !is_numbered(&report->processes[first->process]))
		return;
	say_ranks(who, sizeof(who), report, strays, first->where);
	sl_process_who(owner, &report->processes[first->owner]);
	if (one_device)
		snprintf(whose, sizeof(whose), "device %d, which is %s's", first->state->device, owner);
	else
		snprintf(whose, sizeof(whose), "devices that are other %s'",
			 is_numbered(&report->processes[first->process]) ? "ranks" : "processes");
	snprintf(count, sizeof(count), number > 1 ? "%u stray contexts" : "a stray context", number);
	sl_report_find(report, &(struct sl_finding){
				       .id = "ranks.stray_context",
				       .severity = "warning",
				       .process = (int)first->process,
				       .device = first->state->device,
				       .bytes = bytes + contexts,
				       .text = sl_memory_print("%s use%s %s: %s%s%s there%s%s", who, many ? "" : "s", whose, count,
							       bytes ? " and " : "", bytes ? SL_SIZE(bytes) : "",
							       first->where[0] ? ", first at " : "", first->where),
				       .stack = first->stack,
				       .advice = sl_memory_copy(advice_for(&report->processes[first->process], first->state))});
}

static void run(struct sl_report *report)
{
	struct strays strays = {0};

	collect(report, &strays);
	for (size_t i = 0; i < strays.list.count; i++) {
		bool told = false;

		for (size_t k = 0; k < i && !told; k++)
			told = !strcmp(strays.list.item[k].where, strays.list.item[i].where);
		if (!told)
			find(report, &strays, &strays.list.item[i]);
	}
	free(strays.list.item);
}

const struct sl_analysis sl_analysis_strays = {.name = "strays", .run = run};
