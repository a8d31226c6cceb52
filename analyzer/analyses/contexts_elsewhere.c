/* SPDX-License-Identifier: MIT */
/*
 * Contexts of ranks on devices that belong to other ranks; each costs some hundred MiB there.  One line of a program makes many
 * of them, in every rank and on every device, and gets one finding.  Processes that no launcher numbered are taken for strays if
 * two of them at least used another's device before their own, and little of it.
 */
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/base/map.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/vector.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/report.h"

/* The contexts that one line made, by the order of processes. */
struct strays {
	unsigned process; /* of the first one, as are the next three */
	const struct sl_device_state *state;
	int owner; /* index of a process */
	struct sl_stack stack;
	uint64_t bytes, contexts;
	unsigned number, processes, last; /* last: the process that made the last one */
	bool one_device;
	unsigned who[SL_STRAYS_MAX];
};

struct lines {
	struct sl_map places; /* index into list + 1 */
	SL_VECTOR(struct strays) list;
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

/* Which processes have a device of a host for their own. */
struct owners {
	struct sl_map first; /* index of a process + 1 */
	uintptr_t *next;     /* of each process, the next one with the same device: index + 1, or 0 */
};

/* The first process, a rank or not as this one is, whose own device it is. */
static uintptr_t *first_owner(struct owners *owners, struct numberings *numberings, const struct sl_process *process,
			      const char *uuid)
{
	uintptr_t host = *sl_map_at(&numberings->hosts, text_or(process->trace->header.host));
	char *key = sl_memory_print("%d %zu %s", is_numbered(process), (size_t)host, uuid);
	uintptr_t *first = sl_map_at(&owners->first, key);

	free(key);
	return first;
}

static void find_owners(const struct sl_report *report, struct numberings *numberings, struct owners *owners)
{
	owners->next = sl_memory_must(calloc(report->process_count + 1, sizeof(*owners->next)));
	for (unsigned i = report->process_count; i-- > 0;) {
		const struct sl_process *process = &report->processes[i];
		const struct sl_device_state *home = process->parent ? NULL : sl_devices_home(process);
		const char *own = home ? defined(process, home->device) : NULL;
		uintptr_t *first;

		if (!own)
			continue;
		first = first_owner(owners, numberings, process, own);
		owners->next[i] = *first;
		*first = i + 1;
	}
}

/* The other process whose own device it is; -1: nobody's, or the process's own. */
static int owner_of(const struct sl_report *report, struct numberings *numberings, struct owners *owners, unsigned process,
		    const char *uuid)
{
	uintptr_t owner = uuid ? *first_owner(owners, numberings, &report->processes[process], uuid) : 0;

	return (int)(owner == process + 1 ? owners->next[process] : owner) - 1;
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
static struct sl_stack place_of(const struct sl_process *process, const struct sl_device_state *state)
{
	const struct sl_track *first = first_there(process, state);

	return first ? first->stack : state->context_stack;
}

static uint64_t first_use(const struct sl_process *process, const struct sl_device_state *state)
{
	const struct sl_track *first = first_there(process, state);
	uint64_t made = state->context_made.time_ns;

	return first && (!made || first->first_ns < made) ? first->first_ns : made;
}

/* True: the process used its own device before, so the line names the wrong one. */
static bool is_late(const struct sl_process *process, const struct sl_device_state *there)
{
	const struct sl_device_state *home = sl_devices_home(process);
	uint64_t own = home ? first_use(process, home) : 0;

	return own && own < first_use(process, there);
}

static void add(struct sl_report *report, struct lines *lines, unsigned i, const struct sl_device_state *state, int owner)
{
	struct sl_process *process = &report->processes[i];
	struct strays one = {i, state, owner, place_of(process, state), .one_device = true}, *strays;
	char where[300];
	uintptr_t *line;

	sl_owners_line(process, one.stack, 2, where, sizeof(where));
	line = sl_map_at(&lines->places, where);
	if (!*line) {
		*SL_PUSH(&lines->list) = one;
		*line = lines->list.count;
	}
	strays = &lines->list.item[*line - 1];
	strays->bytes += state->known_peak;
	strays->contexts += state->context_bytes;
	strays->one_device &= owner == strays->owner;
	if (!strays->number++ || strays->last != i) {
		if (strays->processes < SL_STRAYS_MAX)
			strays->who[strays->processes] = i;
		strays->processes++;
	}
	strays->last = i;
}

static void collect(struct sl_report *report, struct lines *lines)
{
	struct numberings numberings = {0};
	struct owners owners = {0};

	find_numberings(report, &numberings);
	find_owners(report, &numberings, &owners);
	for (unsigned i = 0; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];
		const struct sl_device_state *home = sl_devices_home(process);
		const char *own = own_uuid(&numberings, process);

		for (size_t d = 1; home && d < SL_COUNT(process->model->devices); d++) {
			const struct sl_device_state *state = process->model->devices[d];
			const char *uuid;
			int owner;

			if (!state || (!process->parent && state == home) || (!state->used && !state->context_made.time_ns))
				continue;
			uuid = uuid_of(&numberings, process, state->device);
			if (process->parent && (!own || !uuid || !strcmp(own, uuid)))
				continue;
			owner = owner_of(report, &numberings, &owners, i, uuid);
			if (owner >= 0 && (is_numbered(process) || is_forgetful(process, state, home)))
				add(report, lines, i, state, owner);
		}
	}
	sl_map_free(&owners.first);
	free(owners.next);
	sl_map_free(&numberings.hosts);
	free(numberings.list.item);
}

/* count: processes; of: contexts; other: bytes of blocks. */
static void find(struct sl_report *report, const struct strays *strays)
{
	const struct sl_process *process = &report->processes[strays->process];
	struct sl_finding finding = {
		.kind = SL_FOUND_ranks_stray_context,
		.severity = "warning",
		.process = (int)strays->process,
		.device = strays->state->device,
		.bytes = strays->bytes + strays->contexts,
		.stack = strays->stack,
		.strays = {.owner = strays->one_device ? strays->owner : -1, .late = is_late(process, strays->state)},
		.count = strays->processes,
		.of = strays->number,
		.other = strays->bytes};

	if (strays->processes < 2 && !is_numbered(process))
		return;
	memcpy(finding.strays.process, strays->who, sizeof(strays->who));
	sl_report_find(report, &finding);
}

static void run(struct sl_report *report)
{
	struct lines lines = {0};

	collect(report, &lines);
	for (size_t i = 0; i < lines.list.count; i++)
		find(report, &lines.list.item[i]);
	sl_map_free(&lines.places);
	free(lines.list.item);
}

const struct sl_analysis sl_analysis_strays = {.name = "strays", .run = run};
