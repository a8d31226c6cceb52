/* SPDX-License-Identifier: MIT */
#include "analyzer/snapshot/cache.h"

#include "analyzer/snapshot/names.h"

static const struct sl_snapshot_event *events_of(const struct sl_rebuilt *r)
{
	return r->snapshot->events.item + r->events.first;
}

/* What has no cache is freed and not given back. */
static bool gives_back(const struct sl_snapshot_event *event)
{
	return !event->outside && (event->action == SL_SNAPSHOT_SEGMENT_FREE || event->action == SL_SNAPSHOT_SEGMENT_UNMAP);
}

bool sl_cache_is_retry(const struct sl_rebuilt *r, size_t at)
{
	const struct sl_snapshot_event *events = events_of(r);
	enum sl_snapshot_freed by = sl_snapshot_freed_by(r->snapshot, events[at].stack);

	if (by != SL_SNAPSHOT_UNSAID)
		return by == SL_SNAPSHOT_BY_REQUEST;
	while (at < r->events.count && gives_back(&events[at]))
		at++;
	return at < r->events.count && (events[at].action == SL_SNAPSHOT_SEGMENT_ALLOC ||
					events[at].action == SL_SNAPSHOT_SEGMENT_MAP || events[at].action == SL_SNAPSHOT_OOM);
}

/* The bytes that the request behind these events got; 0: it failed, or there is none. */
static uint64_t asked_behind(const struct sl_rebuilt *r, size_t at)
{
	const struct sl_snapshot_event *events = events_of(r);

	while (at < r->events.count &&
	       (events[at].action == SL_SNAPSHOT_SEGMENT_ALLOC || events[at].action == SL_SNAPSHOT_SEGMENT_MAP))
		at++;
	return at < r->events.count && events[at].action == SL_SNAPSHOT_ALLOC ? events[at].size : 0;
}

/* Takes the segments that go from event `at` on.  Returns the number of the event behind them. */
static size_t take(struct sl_cache_course *course, const struct sl_rebuilt *r, size_t at, uint64_t first_us, uint64_t *largest)
{
	const struct sl_snapshot_event *events = events_of(r), *first = &events[at];
	bool retry = sl_cache_is_retry(r, at);
	struct sl_given_back *given = retry ? &course->retried : &course->emptied;
	uint64_t bytes = 0, asked;

	for (; at < r->events.count && gives_back(&events[at]); at++)
		bytes += events[at].size;
	asked = asked_behind(r, at);
	if (retry && !asked)
		return at; /* an out-of-memory error, which is told as such */
	given->times++;
	given->bytes += bytes;
	if (bytes <= largest[retry])
		return at;
	largest[retry] = bytes;
	given->stack = first->stack;
	if (retry) {
		course->retry_us = first->time_us - first_us;
		course->retry_bytes = bytes;
		course->asked = asked;
	}
	return at;
}

void sl_cache_follow(struct sl_cache_course *course, const struct sl_rebuilt *r, uint64_t first_us)
{
	const struct sl_snapshot_event *events = events_of(r);
	uint64_t reserved = r->reserved, tensors = r->requested, largest[2] = {0};

	*course = (struct sl_cache_course){
		.peak = reserved, .peak_tensors = tensors, .emptied.stack = SL_SNAPSHOT_NONE, .retried.stack = SL_SNAPSHOT_NONE};
	for (size_t i = 0, behind = 0; i < r->events.count; i++) {
		if (gives_back(&events[i]) && i >= behind)
			behind = take(course, r, i, first_us, largest);
		switch (events[i].action) {
		case SL_SNAPSHOT_ALLOC:
			tensors += events[i].size;
			break;
		case SL_SNAPSHOT_FREE_COMPLETED:
			tensors -= events[i].size;
			break;
		case SL_SNAPSHOT_SEGMENT_ALLOC:
		case SL_SNAPSHOT_SEGMENT_MAP:
			reserved += events[i].size;
			break;
		case SL_SNAPSHOT_SEGMENT_FREE:
		case SL_SNAPSHOT_SEGMENT_UNMAP:
			reserved -= events[i].size;
			break;
		default:
			break;
		}
		if (reserved > course->peak || (reserved == course->peak && tensors > course->peak_tensors)) {
			course->peak = reserved;
			course->peak_tensors = tensors;
			course->peak_us = events[i].time_us - first_us;
		}
	}
}
