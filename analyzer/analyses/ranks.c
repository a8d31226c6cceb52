/* SPDX-License-Identifier: MIT */
/*
 * Compares ranks: which ran out of memory first, and which holds more or less than the ranks that do the same.
 *
 * Ranks do the same when most of their allocating places are the same; pipeline stages differ by design.  The clocks of two
 * hosts differ: events are not ordered if they are closer than report->skew.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/base/utf8.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/report.h"
#include "analyzer/report/skew.h"
#include "common/fnv.h"

/* What an unusual rank holds at its peak compared with a typical one of its group, place by place. */

struct sl_rank_difference {
	struct sl_unlike unlike;
	bool grows;  /* one of its places grows */
	bool there;  /* one of these grows in the typical rank too */
	bool alone;  /* the typical rank never asks at the first place */
	bool passes; /* the first place gives its memory back and asks again */
	bool once;   /* the first place holds more in no more blocks, though its mean request is as large as in the typical rank */
	struct sl_stack stack; /* of the largest difference, in the unusual rank */
};

/* What the unusual rank holds more or less of, at places where neither rank asks after the first half of its run. */
struct sl_rank_role {
	struct sl_unlike unlike;
	uint64_t key; /* of its places and sizes: the same for ranks with the same role; 0: none */
	double bytes; /* more or less, together */
};

#define SHOWN 2

struct place {
	char name[300];
	struct sl_process *process; /* one that asked there, and */
	struct sl_stack stack;	    /* its stack */
	const struct sl_site *site; /* the outlier's largest site of this place; NULL: it has none */
	uint64_t site_bytes;
	double more, blocks; /* bytes and blocks above the typical rank */
	bool grows, there;   /* in the unusual rank, in the typical one */
	bool is_shown;
	bool late; /* either rank asked for something there after its start */
};

struct held_places {
	SL_VECTOR(struct place) list;
};

static struct place *place_of(struct held_places *places, struct sl_process *process, struct sl_stack stack)
{
	char name[300];

	sl_owners_line(process, stack, 2, name, sizeof(name));
	for (size_t i = 0; i < places->list.count; i++)
		if (!strcmp(places->list.item[i].name, name))
			return &places->list.item[i];
	struct place *place = SL_PUSH(&places->list);

	*place = (struct place){.process = process, .stack = stack};
	snprintf(place->name, sizeof(place->name), "%s", name);
	return place;
}

static bool grows(const struct sl_process *process, const struct sl_site *site)
{
	for (size_t i = 0; i < process->leaks_by_line.count; i++) {
		const struct sl_leak_line *line = &process->leaks_by_line.item[i];

		if (line->verdict == SL_KEPT_GROWING && line->track == &process->model->tracks.item[site->track])
			return true;
	}
	return false;
}

/* The end of the first part of the time in which the process asked for memory. */
static double start_of(const struct sl_model *model)
{
	double first = (double)model->last_call_ns;

	for (size_t i = 0; i < model->tracks.count; i++)
		first = fmin(first, (double)model->tracks.item[i].first_ns);
	return first + SL_HALF * ((double)model->last_call_ns - first);
}

static void add(struct held_places *places, struct sl_process *process, int device, bool typical)
{
	double start = start_of(process->model);
	uint64_t bytes;

	for (const struct sl_site *site = NULL; (site = sl_owners_next(process, device, SL_WEIGH_PEAK, site, &bytes));) {
		struct place *place = place_of(places, process, site->stack);

		place->more += typical ? -(double)bytes : (double)bytes;
		place->blocks += (typical ? -1 : 1) * (double)sl_model_blocks_at_peak(process->model, site);
		place->late |= (double)process->model->tracks.item[site->track].last_ns > start;
		*(typical ? &place->there : &place->grows) |= grows(process, site);
		if (typical)
			continue;
		if (bytes > place->site_bytes) {
			place->site = site;
			place->site_bytes = bytes;
		}
	}
}

/* What grows is first. */
static int by_difference(const void *a, const void *b)
{
	const struct place *one = a, *other = b;

	return SL_FALLING(one->grows, other->grows) ?: SL_FALLING(fabs(one->more), fabs(other->more))
	       ?: strcmp(one->name, other->name);
}

static void compare(struct held_places *places, struct sl_process *unlike, int device, struct sl_process *typical, int its_device)
{
	*places = (struct held_places){0};
	add(places, unlike, device, false);
	add(places, typical, its_device, true);
	if (places->list.count)
		qsort(places->list.item, places->list.count, sizeof(*places->list.item), by_difference);
}

static void take(struct sl_unlike *unlike, const struct place *place, double more, bool rest)
{
	if (unlike->places == SL_UNLIKE_MAX)
		return;
	unlike->place[unlike->places].process = place->process;
	unlike->place[unlike->places].stack = place->stack;
	unlike->place[unlike->places].more = more;
	unlike->place[unlike->places].grows = place->grows;
	unlike->place[unlike->places++].rest = rest;
}

/* The rest, so that the parts add up. */
static void take_rest(struct sl_unlike *unlike, const struct held_places *places, double rest)
{
	const struct place none = {0};
	size_t i = 0;

	while (i < places->list.count && (places->list.item[i].is_shown || (places->list.item[i].more > 0) != (rest > 0)))
		i++;
	take(unlike, i < places->list.count ? &places->list.item[i] : &none, rest, true);
}

/* What a process asked for at a place over its life. */
struct asked {
	uint64_t births, bytes, max_blocks;
};

static struct asked asked_at(struct sl_process *process, int device, const char *place)
{
	struct asked asked = {0};
	char name[300];

	for (size_t i = 0; i < process->model->tracks.count; i++) {
		const struct sl_track *track = &process->model->tracks.item[i];

		if (track->device != device || track->kind >= SL_OBJECT_CONTEXT)
			continue;
		sl_owners_line(process, track->stack, 2, name, sizeof(name));
		if (strcmp(name, place) != 0)
			continue;
		asked.births += track->births;
		asked.bytes += track->born_bytes;
		asked.max_blocks += track->most_blocks;
	}
	return asked;
}

static double mean_of(const struct asked *asked)
{
	return asked->births ? (double)asked->bytes / (double)asked->births : 0;
}

/* Each on one device. */
static void find_differences(struct sl_process *unlike, int device, struct sl_process *typical, int its_device,
			     struct sl_rank_difference *difference)
{
	struct held_places places;
	double all = (double)unlike->model->devices[device + 1]->known_peak -
		     (double)typical->model->devices[its_device + 1]->known_peak;
	double explained = 0;
	unsigned shown = 0;

	*difference = (struct sl_rank_difference){0};
	compare(&places, unlike, device, typical, its_device);
	for (size_t i = 0; i < places.list.count && shown < SHOWN; i++) {
		struct place *place = &places.list.item[i];

		if (fabs(place->more) < SL_LITTLE * fabs(all))
			continue;
		if (!shown++ && place->site) {
			struct asked own = asked_at(unlike, device, place->name),
				     there = asked_at(typical, its_device, place->name);

			difference->stack = place->site->stack;
			difference->alone = !there.births;
			difference->passes = own.births >= 2 * own.max_blocks;
			difference->once = place->blocks <= 0 && mean_of(&own) < SL_LARGER * mean_of(&there);
		}
		place->is_shown = true;
		difference->grows |= place->grows;
		difference->there |= place->grows && place->there;
		explained += place->more;
		take(&difference->unlike, place, place->more, false);
	}
	if (shown && fabs(all - explained) > SL_LITTLE * fabs(all))
		take_rest(&difference->unlike, &places, all - explained);
	free(places.list.item);
}

/* As above; places that differ by less than `least` bytes are no part of it. */
static void role_of_holdings(struct sl_process *unlike, int device, struct sl_process *typical, int its_device, double least,
			     struct sl_rank_role *role)
{
	struct held_places places;

	*role = (struct sl_rank_role){0};
	compare(&places, unlike, device, typical, its_device);
	for (size_t i = 0; i < places.list.count; i++) {
		const struct place *place = &places.list.item[i];

		if (place->grows || place->late || fabs(place->more) < least)
			continue;
		role->bytes += place->more;
		role->key = sl_utf8_mix_text(role->key ?: SL_FNV_START, SL_SIZE(sl_stats_bytes(fabs(place->more))));
		role->key = sl_utf8_mix_text(role->key + (place->more > 0), place->name);
		take(&role->unlike, place, place->more, false);
	}
	free(places.list.item);
}

#define PLACES_MAX 64
#define DEVIATIONS 3.5

/* ---- who was first */

/* The first error from which the program did not recover; 0: none. */
static uint64_t out_at(const struct sl_process *process, const struct sl_oom **oom)
{
	*oom = sl_model_next_failure(process->model, NULL);
	return *oom ? sl_process_unix(process, (*oom)->time_ns) : 0;
}

/* 0 where both processes use the same clock. */
static uint64_t skew_between(const struct sl_report *report, const struct sl_process *a, const struct sl_process *b)
{
	return sl_skew_same_host(a, b) ? 0 : report->skew.bound_ns;
}

/* count: ranks that ran out too; of: all; other: nanoseconds to the next, or to the end of the others. */
static void tell_first(struct sl_report *report, unsigned first, const struct sl_oom *first_oom, uint64_t at)
{
	const struct sl_process *p = &report->processes[first];
	unsigned followed = 0, close = 0, silent = 0, others = 0;
	uint64_t next = UINT64_MAX, last_end = 0;
	bool ended;

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *other = &report->processes[i];
		const struct sl_oom *oom;
		uint64_t then = out_at(other, &oom);

		if (i == first || !sl_process_is_rank(other))
			continue;
		others++;
		if (then && then - at < skew_between(report, p, other))
			close++;
		else if (then && then < next)
			next = then, followed++;
		else if (then)
			followed++;
		silent += sl_process_unix(other, other->model->last_call_ns) + skew_between(report, p, other) <= at;
		last_end = other->ended_unix_ns > last_end ? other->ended_unix_ns : last_end;
	}
	if (!others)
		return;
	ended = silent == others && last_end > at;
	sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_ranks_first,
						    .severity = "critical",
						    .process = (int)first,
						    .device = -1,
						    .unix_ns = at,
						    .bytes = SL_UNKNOWN,
						    .stack = first_oom->stack,
						    .first = close	? SL_FIRST_CLOSE
							     : followed ? SL_FIRST_FOLLOWED
							     : ended	? SL_FIRST_SILENT
									: SL_FIRST_ONLY,
						    .count = close ?: followed,
						    .of = others + 1,
						    .other = followed ? next - at
							     : ended  ? last_end - at
								      : 0});
}

static void find_first(struct sl_report *report)
{
	uint64_t at = UINT64_MAX;
	const struct sl_oom *first_oom = NULL;
	unsigned first = 0;

	sl_skew_bound(report);
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_oom *oom;
		uint64_t then = out_at(&report->processes[i], &oom);

		if (then && sl_process_is_rank(&report->processes[i]) && then < at) {
			at = then;
			first = i;
			first_oom = oom;
		}
	}
	if (at != UINT64_MAX)
		tell_first(report, first, first_oom, at);
}

/* ---- groups of ranks that do the same */

/* One number for each stack that allocates, made from names and lines so that it is the same in every rank. */
struct places {
	uint64_t stack[PLACES_MAX]; /* sorted, without duplicates */
	unsigned count;
};

/* The frame that a person looks for and its nearest callers; frames further out may differ between ranks without meaning. */
static uint64_t hash_stack(const struct sl_stack_frame *frames, unsigned count)
{
	const struct sl_stack_frame *frame = sl_stacks_interesting(frames, count), *end = frames + count;
	uint64_t hash = SL_FNV_START;
	bool python = frame && frame->python;

	for (unsigned hashed = 0; frame && frame < end && hashed < SL_NAMED; frame++) {
		if (frame->python != python)
			continue;
		uint64_t at = frame->file ? frame->line : frame->offset;

		hash = sl_utf8_mix_text(sl_utf8_mix_text(sl_utf8_mix_text(hash, frame->function), frame->file), frame->module);
		hash = sl_fnv_bytes(hash, &at, sizeof(at));
		hashed++;
	}
	return hash;
}

static void take_places(struct sl_process *process, struct places *places)
{
	struct sl_stack_frame frames[SL_STACK_MAX];

	for (size_t i = 0; i < process->model->sites.count && places->count < PLACES_MAX; i++) {
		const struct sl_site *site = &process->model->sites.item[i];
		uint64_t hash = hash_stack(frames, sl_process_stack(process, frames, site->stack));
		bool listed = false;

		for (unsigned k = 0; k < places->count && !listed; k++)
			listed = places->stack[k] == hash;
		if (!listed)
			places->stack[places->count++] = hash;
	}
	qsort(places->stack, places->count, sizeof(*places->stack), sl_stats_by_number);
}

static double alike(const struct places *a, const struct places *b)
{
	unsigned i = 0, k = 0, both = 0;

	while (i < a->count && k < b->count) {
		uint64_t x = a->stack[i], y = b->stack[k];

		both += x == y;
		i += x <= y;
		k += y <= x;
	}
	return a->count + b->count > both ? (double)both / (double)(a->count + b->count - both) : 1;
}

/* After this many groups, a rank that is like none of them stands alone. */
#define GROUPS_MAX 256

static void cluster(struct sl_report *report)
{
	struct places *leads = sl_memory_must(calloc(GROUPS_MAX + 1, sizeof(*leads)));
	unsigned lead[GROUPS_MAX + 1], groups = 0;

	for (unsigned i = 0; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];
		unsigned k = 0;

		process->alike = SL_ALIKE_UNKNOWN;
		if (report->process_count < SL_SEVERAL || !sl_process_is_rank(process) || !sl_devices_home(process))
			continue;
		leads[groups].count = 0;
		take_places(process, &leads[groups]);
		lead[groups] = i;
		while (k < groups && alike(&leads[groups], &leads[k]) < SL_HALF)
			k++;
		process->alike = lead[k];
		groups += k == groups && groups < GROUPS_MAX;
	}
	free(leads);
}

/* ---- outliers */

static double peak_of(const struct sl_process *process)
{
	return (double)sl_devices_home(process)->known_peak;
}

/* How a rank differs from the median, and which ranks differ so. */
struct member {
	struct sl_rank_role role;
	unsigned first, count; /* first: the first rank with this role; count: how many have it, set for the first */
};

/* Ranks that do the same. */
struct group {
	unsigned lead, count, typical;
	double median, least;	/* of the peaks; a rank that differs by no more than `least` is no outlier */
	struct member *members; /* one for each process of the report */
};

static void take_group(const struct sl_report *report, struct group *group)
{
	double *peaks = sl_memory_must(calloc(group->count, sizeof(*peaks))), mad;
	const struct sl_process *processes = report->processes;
	unsigned count = 0;

	for (unsigned i = group->lead; i < report->process_count; i++)
		if (processes[i].alike == group->lead)
			peaks[count++] = peak_of(&processes[i]);
	group->median = sl_stats_median(peaks, count);
	for (unsigned i = 0; i < count; i++)
		peaks[i] = fabs(peaks[i] - group->median);
	mad = sl_stats_median(peaks, count) * 1.4826; /* equals the standard deviation of a normal distribution */
	group->least = fmax(DEVIATIONS * mad, SL_ALIKE * group->median);
	group->typical = group->lead;
	for (unsigned i = group->lead; i < report->process_count; i++)
		if (processes[i].alike == group->lead &&
		    fabs(peak_of(&processes[i]) - group->median) < fabs(peak_of(&processes[group->typical]) - group->median))
			group->typical = i;
	free(peaks);
}

static bool is_far(const struct group *group, const struct sl_process *process)
{
	return process->alike == group->lead && fabs(peak_of(process) - group->median) > group->least;
}

static void take_roles(struct sl_report *report, struct group *group)
{
	struct sl_process *typical = &report->processes[group->typical];
	struct member *members = group->members;

	for (unsigned i = group->lead; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];
		unsigned first = group->lead;

		if (!is_far(group, process))
			continue;
		role_of_holdings(process, sl_devices_home(process)->device, typical, sl_devices_home(typical)->device,
				 SL_ALIKE * group->median, &members[i].role);
		while (members[first].role.key != members[i].role.key)
			first++;
		members[i].first = first;
		members[first].count += members[i].role.key != 0;
	}
}

static bool has_role(const struct group *group, unsigned i)
{
	return group->members[i].role.key && group->members[group->members[i].first].count > 1;
}

/* The other rank of the role whose peak is nearest to what the role explains. */
static unsigned typical_peer(const struct sl_report *report, const struct group *group, unsigned i)
{
	double usual = group->median + group->members[i].role.bytes;
	unsigned found = i;

	for (unsigned k = group->members[i].first; k < report->process_count; k++)
		if (k != i && has_role(group, k) && group->members[k].first == group->members[i].first &&
		    (found == i || fabs(peak_of(&report->processes[k]) - usual) < fabs(peak_of(&report->processes[found]) - usual)))
			found = k;
	return found;
}

/* other: the peak that is usual; of: ranks that do the same. */
static void tell_outlier(struct sl_report *report, const struct group *group, unsigned i)
{
	bool peer = has_role(group, i), first_rank, note;
	struct sl_process *process = &report->processes[i],
			  *typical = &report->processes[peer ? typical_peer(report, group, i) : group->typical];
	double peak = peak_of(process), usual = peer ? peak_of(typical) : group->median;
	struct sl_rank_difference difference;

	find_differences(process, sl_devices_home(process)->device, typical, sl_devices_home(typical)->device, &difference);
	/* rank 0 gathers and writes for the others: that it differs is no fault, unless it grows */
	first_rank = process->trace->header.rank == 0 && peak > usual && !difference.grows;
	if (!difference.grows && (peak < usual || (first_rank && difference.alone && difference.passes)))
		return; /* its share of the work, or a duty that it alone has */
	note = !difference.grows && (first_rank || difference.once || (difference.alone && difference.passes));
	difference.unlike.peer = peer ? typical : NULL;
	difference.unlike.why = difference.there   ? SL_UNLIKE_KEEPS_MORE
				: difference.grows ? SL_UNLIKE_KEEPS
				: first_rank	   ? SL_UNLIKE_FIRST
				: difference.alone ? SL_UNLIKE_ALONE
				: difference.once  ? SL_UNLIKE_ONCE
						   : SL_UNLIKE_WORK;
	sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_ranks_outlier,
						    .severity = note ? "info" : "warning",
						    .process = (int)i,
						    .device = sl_devices_home(process)->device,
						    .bytes = sl_stats_bytes(peak),
						    .stack = difference.stack,
						    .unlike = difference.unlike,
						    .of = peer ? group->members[group->members[i].first].count : group->count,
						    .other = sl_stats_bytes(usual)});
}

/* The ranks of a role are a group of their own; the others may need another first rank. */
static void part_roles(struct sl_report *report, const struct group *group)
{
	unsigned rest = SL_ALIKE_UNKNOWN;

	for (unsigned i = group->lead; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];
		const struct member *member = &group->members[i];

		if (process->alike != group->lead)
			continue;
		if (!has_role(group, i)) {
			rest = rest == SL_ALIKE_UNKNOWN ? i : rest;
			process->alike = rest;
			continue;
		}
		process->alike = member->first;
		if (member->first == i)
			sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_ranks_role,
								    .severity = "info",
								    .process = (int)i,
								    .device = sl_devices_home(process)->device,
								    .bytes = sl_stats_bytes(fabs(member->role.bytes)),
								    .unlike = member->role.unlike,
								    .count = member->count,
								    .of = group->count});
	}
}

/*
 * Two ranks and more that differ alike since their start have another role: they are compared with each other.  A rank that ran
 * out of memory holds less because of that.
 */
static void find_outliers(struct sl_report *report, unsigned lead, unsigned count)
{
	struct group group = {
		.lead = lead, .count = count, .members = sl_memory_must(calloc(report->process_count, sizeof(*group.members)))};
	const struct sl_oom *oom;

	take_group(report, &group);
	take_roles(report, &group);
	for (unsigned i = lead; i < report->process_count; i++) {
		const struct sl_process *process = &report->processes[i];
		double more = is_far(&group, process) ? peak_of(process) - group.median : 0, above_peer;

		if (has_role(&group, i)) {
			more -= group.members[i].role.bytes;
			above_peer = peak_of(process) - peak_of(&report->processes[typical_peer(report, &group, i)]);
			more = fabs(above_peer) < fabs(more) ? above_peer : more;
		}
		if (fabs(more) > group.least && (more > 0 || !out_at(process, &oom)))
			tell_outlier(report, &group, i);
	}
	part_roles(report, &group);
	free(group.members);
}

static void run(struct sl_report *report)
{
	unsigned *size = sl_memory_must(calloc(report->process_count + 1, sizeof(*size)));

	find_first(report);
	cluster(report);
	for (unsigned i = 0; i < report->process_count; i++)
		if (report->processes[i].alike != SL_ALIKE_UNKNOWN)
			size[report->processes[i].alike]++;
	for (unsigned i = 0; i < report->process_count; i++)
		if (size[i] >= SL_SEVERAL)
			find_outliers(report, i, size[i]);
	free(size);
}

const struct sl_analysis sl_analysis_ranks = {.name = "ranks", .run = run};
