/* SPDX-License-Identifier: MIT */
/*
 * The page of Stormlog's own files: samples over time, ranks and findings of the selected session.  Samples know no
 * calls, so there are no stacks, no leaks and no tables of calls; the page says so.
 */

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/outputs/page/page.h"

/* A rank on one device. */
struct device {
	int number, shared;				/* shared: index into `devices` of the page */
	struct sl_line *lines[SL_PAGE_TELEMETRY_LINES]; /* known, allocated, reserved, used */
	uint64_t peak, peak_ns, end;
	int64_t hidden, used_peak, total;
};

struct rank {
	const struct sl_rank_series *series;
	struct sl_timeline timeline; /* of one rank at a time: it is a hundred times what else is known of it */
	SL_VECTOR(struct device) devices;
	uint64_t ooms;
};

struct place {
	const char *host;
	int device;
	int64_t total, used_peak, hidden;
	uint64_t known_peak;
	SL_VECTOR(unsigned) ranks;
};

struct telemetry_page {
	struct sl_page *page;
	struct rank *ranks, *drawn;
	unsigned count;
	SL_VECTOR(struct place) places;
};

static const enum sl_line_what whats[SL_PAGE_TELEMETRY_LINES] = {SL_LINE_KNOWN, SL_LINE_ALLOCATED, SL_LINE_RESERVED, SL_LINE_USED};

static struct device *device_of(struct rank *rank, int64_t id)
{
	int number = id >= 0 && id < SL_DEVICES_MAX ? (int)id : -1;
	struct device *device;

	for (size_t i = 0; i < rank->devices.count; i++)
		if (rank->devices.item[i].number == number)
			return &rank->devices.item[i];
	device = SL_PUSH(&rank->devices);
	*device = (struct device){
		.number = number, .hidden = SL_EVENT_UNKNOWN, .used_peak = SL_EVENT_UNKNOWN, .total = SL_EVENT_UNKNOWN};
	return device;
}

static void take_sample(struct rank *rank, const struct sl_v3_event *event)
{
	struct device *device = device_of(rank, event->device_id);
	uint64_t now = (uint64_t)event->timestamp_ns, reserved = event->reserved_bytes > 0 ? (uint64_t)event->reserved_bytes : 0;

	if (reserved > device->peak) {
		device->peak = reserved;
		device->peak_ns = now;
	}
	device->end = reserved;
	device->used_peak = event->used_bytes > device->used_peak ? event->used_bytes : device->used_peak;
	device->total = event->total_bytes > device->total ? event->total_bytes : device->total;
	if (sl_event_hidden_gap(event) > device->hidden)
		device->hidden = sl_event_hidden_gap(event);
}

static void take_rank(struct rank *rank, const struct sl_rank_series *series)
{
	rank->series = series;
	for (size_t i = 0; i < series->all.count; i++) {
		if (sl_event_is_any_sample(series->all.events[i]))
			take_sample(rank, series->all.events[i]);
		rank->ooms += sl_event_is_oom(series->all.events[i]);
	}
}

static void draw_sample(struct rank *rank, const struct sl_v3_event *event)
{
	struct device *device = device_of(rank, event->device_id);
	uint64_t reserved = event->reserved_bytes > 0 ? (uint64_t)event->reserved_bytes : 0;
	uint64_t values[SL_PAGE_TELEMETRY_LINES] = {reserved, event->allocated_bytes > 0 ? (uint64_t)event->allocated_bytes : 0,
						    reserved, event->used_bytes > 0 ? (uint64_t)event->used_bytes : 0};

	for (unsigned i = 0; i < SL_PAGE_TELEMETRY_LINES; i++)
		sl_timeline_set(&rank->timeline, device->lines[i], (uint64_t)event->timestamp_ns, values[i], SL_NO_SITE);
}

static const struct sl_timeline *draw(void *context, unsigned r)
{
	struct telemetry_page *t = context;
	struct rank *rank = &t->ranks[r];
	const struct sl_rank_series *series = rank->series;

	if (t->drawn == rank)
		return &rank->timeline;
	if (t->drawn)
		sl_timeline_free(&t->drawn->timeline);
	t->drawn = rank;
	rank->timeline.bare = r < t->page->budget.detailed ? 0 : ~(1u << SL_LINE_KNOWN);
	for (size_t d = 0; d < rank->devices.count; d++)
		for (unsigned i = 0; i < SL_PAGE_TELEMETRY_LINES; i++)
			rank->devices.item[d].lines[i] =
				sl_timeline_add(&rank->timeline, whats[i], rank->devices.item[d].number, 0);
	for (size_t i = 0; i < series->all.count; i++)
		if (sl_event_is_any_sample(series->all.events[i]))
			draw_sample(rank, series->all.events[i]);
	if (series->all.count)
		sl_timeline_end(&rank->timeline, (uint64_t)series->all.events[series->all.count - 1]->timestamp_ns);
	return &rank->timeline;
}

/* Ranks of one host that sample one device share it. */
static void find_places(struct telemetry_page *t)
{
	struct sl_arena arena = {0};
	struct sl_map numbers = {0}; /* device and host -> number + 1 */

	for (unsigned r = 0; r < t->count; r++)
		for (size_t d = 0; d < t->ranks[r].devices.count; d++) {
			struct device *device = &t->ranks[r].devices.item[d];
			const char *host = t->ranks[r].series->all.events[0]->host;
			uintptr_t *number = sl_map_at(&numbers, sl_arena_printf(&arena, "%d %s", device->number, host));
			struct place *place;

			if (!*number) {
				*SL_PUSH(&t->places) = (struct place){.host = host,
								      .device = device->number,
								      .total = SL_EVENT_UNKNOWN,
								      .used_peak = SL_EVENT_UNKNOWN,
								      .hidden = SL_EVENT_UNKNOWN};
				*number = t->places.count;
			}
			place = &t->places.item[*number - 1];
			device->shared = (int)*number - 1;
			place->known_peak = device->peak > place->known_peak ? device->peak : place->known_peak;
			place->total = device->total > place->total ? device->total : place->total;
			place->used_peak = device->used_peak > place->used_peak ? device->used_peak : place->used_peak;
			place->hidden = device->hidden > place->hidden ? device->hidden : place->hidden;
			*SL_PUSH(&place->ranks) = r;
		}
	sl_map_free(&numbers);
	sl_arena_free(&arena);
}

static uint64_t to_unsigned(int64_t value)
{
	return value < 0 ? SL_UNKNOWN : (uint64_t)value;
}

static void put_process(struct telemetry_page *t, const struct sl_session *session, const struct rank *rank)
{
	const struct sl_v3_event *first = rank->series->all.events[0],
				 *last = rank->series->all.events[rank->series->all.count - 1];
	const struct device *fullest = NULL;
	struct sl_page *page = t->page;
	uint64_t end = 0;
	int64_t hidden = SL_EVENT_UNKNOWN;

	for (size_t d = 0; d < rank->devices.count; d++) {
		const struct device *device = &rank->devices.item[d];

		fullest = !fullest || device->peak > fullest->peak ? device : fullest;
		hidden = device->hidden > hidden ? device->hidden : hidden;
		end += device->end;
	}
	sl_json_object(page->j, NULL);
	sl_json_known(page->j, "rank", first->world_size > 1 || t->count > 1 ? first->rank : -1);
	sl_json_string(page->j, "host", first->host);
	sl_json_known(page->j, "pid", first->pid);
	sl_json_texts(page->j, "command", (const char *const *)&first->collector, 1);
	sl_json_string(page->j, "session_id", session->summary.session_id);
	sl_json_string(page->j, "trace", session->summary.source);
	sl_json_string(page->j, "ended", sl_session_status_names[session->summary.status]);
	sl_json_known_uint(page->j, "events", rank->series->all.count);
	sl_json_known_uint(page->j, "lost_events", 0);
	sl_json_known_uint(page->j, "peak", fullest ? fullest->peak : 0);
	sl_page_put_unix(page, "peak_at", fullest ? fullest->peak_ns : 0);
	sl_json_known_uint(page->j, "end", end);
	sl_json_known_uint(page->j, "hidden", to_unsigned(hidden));
	sl_json_known_uint(page->j, "leaks", SL_UNKNOWN);
	sl_json_known_uint(page->j, "ooms", rank->ooms);
	sl_page_put_unix(page, "from", (uint64_t)first->timestamp_ns);
	sl_page_put_unix(page, "to", (uint64_t)last->timestamp_ns);
	sl_json_end(page->j);
}

static void put_device(struct sl_page *page, const struct place *place)
{
	sl_json_object(page->j, NULL);
	sl_json_array(page->j, "processes");
	for (size_t i = 0; i < place->ranks.count; i++)
		sl_json_uint(page->j, NULL, place->ranks.item[i]);
	sl_json_end(page->j);
	sl_json_string(page->j, "host", place->host);
	sl_json_known(page->j, "device", place->device);
	sl_json_string(page->j, "name", NULL);
	sl_json_known_uint(page->j, "room_bytes", to_unsigned(place->total));
	sl_json_known_uint(page->j, "used_peak_bytes", to_unsigned(place->used_peak));
	sl_json_known_uint(page->j, "known_peak_bytes", place->known_peak);
	sl_json_known_uint(page->j, "hidden_peak_bytes", to_unsigned(place->hidden));
	sl_json_string(page->j, "source", "telemetry");
	sl_json_end(page->j);
}

static void put_lines(struct telemetry_page *t)
{
	sl_json_array(t->page->j, "lines");
	for (unsigned r = 0; r < t->count; r++) {
		draw(t, r);
		for (size_t d = 0; d < t->ranks[r].devices.count; d++)
			for (unsigned i = 0; i < (r < t->page->budget.detailed ? SL_PAGE_TELEMETRY_LINES : 1); i++)
				sl_page_put_line(t->page, r, t->ranks[r].devices.item[d].lines[i], "",
						 whats[i] == SL_LINE_USED ? t->ranks[r].devices.item[d].shared : -1);
	}
	sl_json_end(t->page->j);
}

static int by_rank(const void *rank, const void *other)
{
	int64_t x = *(const int64_t *)rank, y = *(const int32_t *)other;

	return SL_RISING(x, y);
}

static int process_of(const struct sl_page *page, int64_t rank, int64_t pid)
{
	const int32_t *found = bsearch(&rank, page->ranks, page->process_count, sizeof(*found), by_rank);

	return found ? (int)(found - page->ranks) : -1;
}

/* Errors, with what their events say: neither what was asked for nor by whom. */
static void take_ooms(struct telemetry_page *t)
{
	for (unsigned r = 0; r < t->count; r++)
		for (size_t i = 0; i < t->ranks[r].series->all.count; i++) {
			const struct sl_v3_event *event = t->ranks[r].series->all.events[i];
			struct sl_page_finding *f;

			if (!sl_event_is_oom(event))
				continue;
			f = sl_page_find(t->page, "oom.sampled", "critical");
			snprintf(f->text, sizeof(f->text), "out of memory, with %s held",
				 SL_SIZE(to_unsigned(event->allocated_bytes)));
			f->advice = "samples do not say who held it: record with stormlog-run to see that";
			f->process = (int)r;
			f->device = (int)event->device_id;
			f->from_unix = f->to_unix = (uint64_t)event->timestamp_ns;
		}
}

static void put_marks(struct telemetry_page *t, const struct sl_markers *markers)
{
	struct sl_page *page = t->page;

	sl_json_array(page->j, "marks");
	for (size_t i = 0; i < markers->count; i++) {
		const struct sl_marker *mark = &markers->list[i];
		int process = process_of(page, mark->rank, -1);

		sl_json_object(page->j, NULL);
		sl_json_uint(page->j, "process", process < 0 ? 0 : (unsigned)process);
		sl_json_known(page->j, "device", -1);
		sl_page_put_unix(page, "at", (uint64_t)mark->start_ns);
		sl_json_string(page->j, "kind", mark->kind);
		sl_json_string(page->j, "text", mark->label);
		sl_json_end(page->j);
	}
	sl_json_end(page->j);
}

static void put_warnings(struct sl_page *page, const struct sl_telemetry *telemetry)
{
	char text[160];

	sl_json_array(page->j, "warnings");
	if (telemetry->sessions.count > 1) {
		snprintf(text, sizeof(text), "This is one of %zu sessions: --session-id chooses another, report.json has all.",
			 telemetry->sessions.count);
		sl_page_put_warning(page, text);
	}
	sl_emit_each_warning(telemetry, sl_page_put_warning, page);
	sl_json_end(page->j);
}

static void put_all(struct telemetry_page *t, const struct sl_telemetry *telemetry, struct sl_session_answers *answers,
		    const char *path)
{
	static const char *const absent[] = {"moments", "segments", "steps"};
	const struct sl_session *session = telemetry->selected;
	struct sl_page *page = t->page;
	struct sl_markers markers;

	sl_page_open(page, "telemetry", path, session ? session->summary.session_id : NULL, NULL, NULL);
	sl_json_array(page->j, "processes");
	for (unsigned r = 0; r < t->count; r++)
		put_process(t, session, &t->ranks[r]);
	sl_json_end(page->j);
	sl_json_array(page->j, "devices");
	for (size_t i = 0; i < t->places.count; i++)
		put_device(page, &t->places.item[i]);
	sl_json_end(page->j);
	put_lines(t);
	sl_page_heat(page);
	sl_markers_derive(&answers->series, &answers->phases, &markers);
	put_marks(t, &markers);
	sl_markers_free(&markers);
	for (size_t i = 0; i < SL_COUNT(absent); i++) {
		sl_json_array(page->j, absent[i]);
		sl_json_end(page->j);
	}
	take_ooms(t);
	if (session)
		sl_page_session_findings(page, answers, process_of);
	sl_page_put_findings(page);
	put_warnings(page, telemetry);
	sl_page_close(page);
}

unsigned *sl_page_telemetry_devices(const struct sl_telemetry *telemetry, unsigned *ranks)
{
	static const struct sl_session_series none;
	const struct sl_session_series *series = telemetry->selected ? &telemetry->selected->answers->series : &none;
	unsigned *counts;

	*ranks = (unsigned)series->rank_count;
	counts = sl_memory_must(calloc(*ranks + 1, sizeof(*counts)));
	for (unsigned r = 0; r < *ranks; r++) {
		struct rank rank = {0};

		take_rank(&rank, &series->ranks[r]);
		counts[r] = (unsigned)rank.devices.count;
		free(rank.devices.item);
	}
	return counts;
}

void sl_page_build_telemetry(struct sl_page *page, const struct sl_page_matter *of, const struct sl_page_budget *budget)
{
	const struct sl_session nothing = {0}, *session = of->telemetry->selected ? of->telemetry->selected : &nothing;
	struct sl_session_answers none = {0}, *answers = session->answers ?: &none;
	struct telemetry_page t = {.page = page};

	t.count = (unsigned)answers->series.rank_count;
	t.ranks = sl_memory_must(calloc(t.count + 1, sizeof(*t.ranks)));
	sl_page_begin(page, t.count, budget);
	page->ranks = sl_memory_must(calloc(t.count + 1, sizeof(*page->ranks)));
	for (unsigned r = 0; r < t.count; r++) {
		take_rank(&t.ranks[r], &answers->series.ranks[r]);
		page->ranks[r] = answers->series.ranks[r].rank;
		page->order[r] = r;
	}
	page->draw = draw;
	page->draw_context = &t;
	page->t0_unix_ns = session->count ? (uint64_t)session->events[0].timestamp_ns : 0;
	page->t1_unix_ns = session->count ? (uint64_t)session->events[session->count - 1].timestamp_ns : 0;
	find_places(&t);
	put_all(&t, of->telemetry, answers, of->path);
	if (t.drawn)
		sl_timeline_free(&t.drawn->timeline);
	for (unsigned r = 0; r < t.count; r++)
		free(t.ranks[r].devices.item);
	for (size_t i = 0; i < t.places.count; i++)
		free(t.places.item[i].ranks.item);
	free(t.places.item);
	free(t.ranks);
}
