/* SPDX-License-Identifier: MIT */
#include "analyzer/report/skew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/format.h"
#include "analyzer/base/map.h"
#include "analyzer/base/memory.h"

/* A shorter call may have been part of a group, which returns before ranks have met. */
#define MEETING_MIN_NS 10000000ull

/* Each host is compared with the first so many.  Beyond these the time would grow with the square of the hosts. */
#define COMPARED 1024

/* Pairs of hosts that have a warning each. */
#define WARNED 8

/* When all ranks of one host were inside the n-th call, by that host's clock; end 0: they never were. */
struct presence {
	uint64_t begin_ns, end_ns;
};

struct host {
	const char *name;
	struct presence present[SL_MEETINGS_MAX];
};

struct bound {
	int64_t min, max; /* bounds of the second host's clock minus the first's */
	unsigned meetings;
};

bool sl_skew_same_host(const struct sl_process *a, const struct sl_process *b)
{
	const char *x = a->trace->header.host, *y = b->trace->header.host;

	return x && y && !strcmp(x, y);
}

/* The n-th communicator that includes all ranks of the run. */
static const struct sl_meeting *meeting_of(const struct sl_process *process, unsigned n)
{
	int64_t world = process->trace->header.world_size;

	for (size_t i = 0; i < process->model->meetings.count; i++)
		if (world > 1 && process->model->meetings.item[i].ranks == (uint64_t)world && !n--)
			return &process->model->meetings.item[i];
	return NULL;
}

static void attend(struct presence *present, const struct sl_process *process, unsigned n, bool first)
{
	const struct sl_meeting *meeting = meeting_of(process, n);
	uint64_t begin, end;

	if (!meeting || meeting->end_ns - meeting->begin_ns < MEETING_MIN_NS) {
		present->end_ns = 0;
		return;
	}
	begin = sl_process_unix(process, meeting->begin_ns);
	end = sl_process_unix(process, meeting->end_ns);
	if (first)
		*present = (struct presence){begin, end};
	if (begin > present->begin_ns)
		present->begin_ns = begin;
	if (end < present->end_ns)
		present->end_ns = end;
}

static unsigned take_hosts(const struct sl_report *report, struct host *hosts)
{
	struct sl_map numbers = {0}; /* index into hosts + 1 */
	unsigned count = 0;

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *process = &report->processes[i];
		const char *name = process->trace->header.host;
		uintptr_t *number;
		bool first;

		if (process->trace->header.rank < 0 || !name)
			continue;
		number = sl_map_at(&numbers, name);
		first = !*number;
		if (first) {
			*number = ++count;
			hosts[count - 1].name = name;
		}
		for (unsigned n = 0; n < SL_MEETINGS_MAX; n++)
			attend(&hosts[*number - 1].present[n], process, n, first);
	}
	sl_map_free(&numbers);
	return count;
}

static struct bound bound_of(const struct host *a, const struct host *b)
{
	struct bound bound = {INT64_MIN, INT64_MAX, 0};

	for (unsigned n = 0; n < SL_MEETINGS_MAX; n++) {
		const struct presence *x = &a->present[n], *y = &b->present[n];
		int64_t min = (int64_t)(y->begin_ns - x->end_ns), max = (int64_t)(y->end_ns - x->begin_ns);

		if (x->end_ns <= x->begin_ns || y->end_ns <= y->begin_ns)
			continue;
		bound.min = min > bound.min ? min : bound.min;
		bound.max = max < bound.max ? max : bound.max;
		bound.meetings++;
	}
	return bound;
}

/* Contradictory bounds (a clock was set, or the calls were not the same) prove nothing. */
static void join(struct sl_report *report, const struct host *a, const struct host *b)
{
	struct bound bound = bound_of(a, b);
	struct sl_skew *skew = &report->skew;
	uint64_t max, min;

	if (!bound.meetings || bound.min > bound.max) {
		skew->meetings = 0;
		return;
	}
	max = (uint64_t)(bound.max > -bound.min ? bound.max : -bound.min);
	min = (uint64_t)(bound.min > 0 ? bound.min : bound.max < 0 ? -bound.max : 0);
	skew->bound_ns = max > skew->bound_ns ? max : skew->bound_ns;
	skew->least_ns = min > skew->least_ns ? min : skew->least_ns;
	skew->meetings = bound.meetings < skew->meetings ? bound.meetings : skew->meetings;
	if (min > SL_SKEW_NS && skew->differing++ < WARNED)
		sl_report_warn(report, "the clock of %s is %s to %s ahead of that of %s: times are as each host tells them",
			       bound.min > 0 ? b->name : a->name, SL_SPAN(min), SL_SPAN(max), bound.min > 0 ? a->name : b->name);
}

void sl_skew_bound(struct sl_report *report)
{
	uint64_t given = report->options.skew_ms * UINT64_C(1000000);
	struct host *hosts = sl_memory_must(calloc(report->process_count + 1, sizeof(*hosts)));
	struct sl_skew *skew = &report->skew;

	*skew = (struct sl_skew){.meetings = UINT32_MAX, .hosts = take_hosts(report, hosts)};
	for (unsigned i = 1; i < skew->hosts; i++)
		for (unsigned k = 0; k < i && k < COMPARED && skew->meetings; k++)
			join(report, &hosts[k], &hosts[i]);
	free(hosts);
	if (skew->hosts > COMPARED)
		skew->bound_ns *= 2; /* two hosts that were not compared are each at most so far from the first one */
	if (skew->differing > WARNED)
		sl_report_warn(report, "the clocks of %llu more pairs of hosts differ, by %s at most",
			       (unsigned long long)skew->differing - WARNED, SL_SPAN(skew->bound_ns));
	if (skew->hosts < 2 || skew->meetings == UINT32_MAX)
		skew->meetings = 0;
	/* a larger proven difference replaces an assumed or given bound, a smaller proven bound an assumed one */
	if (skew->meetings && (skew->least_ns > (given ? given : SL_SKEW_NS) || (!given && skew->bound_ns < SL_SKEW_NS))) {
		skew->evidence = "communicators";
		return;
	}
	skew->evidence = given ? "option" : "assumed";
	skew->bound_ns = given ? given : SL_SKEW_NS;
}

void sl_skew_describe(const struct sl_skew *skew, char *out, size_t size)
{
	char span[SL_FORMAT_BYTES];

	sl_format_duration(span, skew->bound_ns);
	if (!strcmp(skew->evidence, "communicators"))
		snprintf(out, size, "%s, by which clocks of hosts may differ (shown by %u communicator%s of all ranks)", span,
			 skew->meetings, skew->meetings == 1 ? "" : "s");
	else
		snprintf(out, size, "%s, by which clocks of hosts may differ (%s)", span,
			 !strcmp(skew->evidence, "option") ? "--clock-skew" : "assumed: --clock-skew says another bound");
}
