/* SPDX-License-Identifier: MIT */
/* Longer than other files: a session's bounds, its samples and its events are made in one walk over the lines of a process. */
#include "analyzer/upstream/upstream.h"

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/bundle_path.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/api_names.h"

#define COLLECTOR_CUDA "stormlog.cuda_preload"
#define COLLECTOR_ROCM "stormlog.rocm_preload"
#define COLLECTOR_CPU  "stormlog.cpu_tracker" /* the name of Stormlog's CPU tracker, whose samples have the same fields */

/* True: an earlier sample tells how much was hidden on the device.  The bin of the first such sample does not count. */
static bool was_looked_at(const struct sl_model *model, const struct sl_device_state *device, uint64_t ns)
{
	const struct sl_line *hidden = device->hidden_line;

	return hidden && hidden->begun && ns >= model->timeline.begin_ns + ((uint64_t)(hidden->first + 1) << model->timeline.shift);
}

/* Says why a device's figure was not measured at that time. */
static const char *computed(const struct sl_model *model, const struct sl_device_state *device, uint64_t ns)
{
	if (!device || !device->used_line)
		return "process allocations: no device figure";
	return was_looked_at(model, device, ns) ? "between samples of the device"
						: "process allocations: before the first sample of the device";
}

struct maker {
	const struct sl_process *process;
	struct sl_arena *arena;
	struct sl_session *session;
	const struct sl_value *plain; /* metadata for events that add none of their own */
	const char *backend;
	int64_t last_allocated;
	uint32_t bins_done; /* bins of the device whose samples are in the session already */
	unsigned alerts;
};

/* Metadata with room for so many further keys.  `device` may be NULL, here and below. */
static struct sl_value *maker_metadata(struct maker *m, uint32_t room, const struct sl_device_state *device, uint64_t ns)
{
	struct sl_value *metadata = sl_value_object(m->arena, room + 3);

	sl_value_set(metadata, "backend", sl_value_of_text(m->backend));
	sl_value_set(metadata, "sampling_source",
		     sl_value_of_text(!strcmp(m->backend, "cpu")			 ? "resident memory"
				      : device && device->used_line && device->source[0] ? device->source
											 : "preload"));
	if (!strcmp(m->backend, "cpu"))
		return metadata;
	if (!device || !device->used_line || ns)
		sl_value_set(metadata, "device_used_source", sl_value_of_text(computed(m->process->model, device, ns)));
	return metadata;
}

/* Mean of the bin that contains ns; 0: there is no such line. */
static int64_t maker_at(const struct sl_model *model, const struct sl_line *line, uint64_t ns)
{
	return line ? sl_stats_whole(sl_timeline_at(&model->timeline, line, ns)) : 0;
}

/*
 * The same for what PyTorch's allocator held.  The allocator gets a segment some time before it reports the segment; in between
 * the segment counts as the allocator's too.
 */
static int64_t maker_segments(const struct sl_model *model, const struct sl_device_state *device, uint64_t ns)
{
	int64_t reported = maker_at(model, device->torch.reserved, ns), got = 0;

	for (unsigned i = 0; i < model->timeline.line_count && !device->torch.pooled; i++) {
		const struct sl_line *line = model->timeline.lines[i];

		if (line->what == SL_LINE_LIBRARY && line->device == device->device &&
		    sl_model_is_cache(model->libraries.item[line->index]))
			got += maker_at(model, line, ns);
	}
	return got > reported ? got : reported;
}

/* What the program was told that the device has. */
static int64_t maker_total(const struct maker *m, const struct sl_device_state *device)
{
	uint64_t limit = sl_header_limit(m->process->model->header);

	return device->total_bytes == SL_UNKNOWN ? SL_EVENT_UNKNOWN
	       : limit < device->total_bytes	 ? (int64_t)limit
						 : (int64_t)device->total_bytes;
}

/*
 * Sets the device's figures, where `hidden` bytes are known to be neither free nor held by a recorded process.  Since the
 * sample the process may have got or given back memory.  So the sample's hidden bytes are added to what the process holds
 * now, and the gap is exactly the hidden memory.  Memory of other recorded processes is in their own sinks; here it only
 * lowers the free bytes.  Of a limit (--limit) others take nothing.
 */
static void maker_set_hidden(struct maker *m, const struct sl_device_state *device, uint64_t ns, int64_t hidden,
			     struct sl_v3_event *event)
{
	int64_t total = maker_total(m, device), others = maker_at(m->process->model, device->others_line, ns);

	if (total != SL_EVENT_UNKNOWN && (uint64_t)total < device->total_bytes) {
		hidden = (int64_t)(device->context_bytes + device->module_bytes);
		others = 0;
	}
	event->used_bytes = event->reserved_bytes + hidden;
	if (total == SL_EVENT_UNKNOWN)
		return;
	event->total_bytes = total;
	if (event->used_bytes > total)
		event->used_bytes = total;
	event->free_bytes = total - event->used_bytes;
	event->free_bytes -= others < event->free_bytes ? others : event->free_bytes;
}

/* Sets the device's own figures from its samples up to that time, else unknown. */
static void maker_set_used(struct maker *m, const struct sl_device_state *device, uint64_t ns, struct sl_v3_event *event)
{
	event->used_bytes = event->reserved_bytes;
	event->free_bytes = event->total_bytes = SL_EVENT_UNKNOWN;
	if (was_looked_at(m->process->model, device, ns))
		maker_set_hidden(m, device, ns, maker_at(m->process->model, device->hidden_line, ns), event);
}

static const char *collector_of(const char *backend)
{
	return !strcmp(backend, "rocm") ? COLLECTOR_ROCM : !strcmp(backend, "cpu") ? COLLECTOR_CPU : COLLECTOR_CUDA;
}

static struct sl_v3_event maker_event(struct maker *m, const struct sl_device_state *device, uint64_t ns, const char *type)
{
	const struct sl_model *model = m->process->model;
	const struct sl_header *header = model->header;
	struct sl_v3_event event = {
		.timestamp_ns = (int64_t)sl_process_unix(m->process, ns),
		.active_bytes = SL_EVENT_UNKNOWN,
		.inactive_bytes = SL_EVENT_UNKNOWN,
		.free_bytes = SL_EVENT_UNKNOWN,
		.total_bytes = SL_EVENT_UNKNOWN,
		.device_id = device ? device->device : -1,
		.pid = header->pid,
		.rank = header->rank < 0 ? 0 : (int32_t)header->rank,
		.local_rank = header->rank < 0 || header->local_rank < 0 ? 0 : (int32_t)header->local_rank,
		.world_size = header->rank < 0 || header->world_size < 1 ? 1 : (int32_t)header->world_size,
		.session_id = m->process->session_id,
		.event_type = type,
		.collector = collector_of(m->backend),
		.host = header->host && *header->host ? header->host : "unknown",
		.job_id = header->job_id && *header->job_id ? header->job_id : NULL,
		.metadata = m->plain,
	};

	if (event.world_size == 1)
		event.rank = event.local_rank = 0;
	if (!device)
		return event;
	event.reserved_bytes = maker_at(model, device->line, ns);
	event.allocated_bytes = event.reserved_bytes;
	if (device->torch.used) {
		int64_t cached = maker_segments(model, device, ns) - maker_at(model, device->torch.allocated, ns);

		event.allocated_bytes =
			cached > 0 && cached < event.allocated_bytes ? event.allocated_bytes - cached : event.allocated_bytes;
		event.active_bytes = event.allocated_bytes;
		event.inactive_bytes = event.reserved_bytes - event.allocated_bytes;
	}
	maker_set_used(m, device, ns, &event);
	return event;
}

/* What the process held on the device at that time, exactly; a bin only gives a mean. */
static void maker_set_held(struct maker *m, const struct sl_device_state *device, uint64_t ns, uint64_t known_bytes,
			   uint64_t unused, struct sl_v3_event *event)
{
	event->reserved_bytes = (int64_t)known_bytes;
	event->allocated_bytes = (int64_t)(known_bytes > unused ? known_bytes - unused : 0);
	if (event->active_bytes != SL_EVENT_UNKNOWN) {
		event->active_bytes = event->allocated_bytes;
		event->inactive_bytes = event->reserved_bytes - event->allocated_bytes;
	}
	maker_set_used(m, device, ns, event);
}

/* Appends the event to the session, with the changes since the one before. */
static void maker_add(struct maker *m, struct sl_v3_event event)
{
	event.change_bytes = event.allocated_bytes - m->last_allocated;
	m->last_allocated = event.allocated_bytes;
	sl_session_add_event(m->session, &event);
}

/* Writes lines over time as a limited number of samples of a session, and the peak. */

/* True: a sample in bins [from, to) tells what is hidden. */
static bool was_sampled(const struct sl_device_state *device, uint32_t from, uint32_t to)
{
	const struct sl_line *line = device->samples_line;

	if (!line || !line->begun || from >= to || from > line->bin || to <= line->first)
		return false;
	return line->bins[to > line->bin ? line->bin : to - 1].last > (from > line->first ? line->bins[from - 1].last : 0);
}

/*
 * Each sample of the device is one sample of the sink, with the most that was hidden.  Others have no device size, and
 * upstream's gap analysis skips them.
 */
static void set_sampled(struct maker *m, const struct sl_device_state *device, uint64_t ns, uint32_t from, uint32_t to,
			struct sl_v3_event *event)
{
	const struct sl_timeline *timeline = &m->process->model->timeline;
	uint64_t begin = timeline->begin_ns + ((uint64_t)from << timeline->shift),
		 end = timeline->begin_ns + ((uint64_t)to << timeline->shift) - 1;

	from = from > m->bins_done ? from : m->bins_done;
	m->bins_done = to;
	if (was_sampled(device, from, to)) {
		maker_set_hidden(m, device, ns, (int64_t)sl_timeline_max(timeline, device->hidden_line, begin, end), event);
		return;
	}
	event->free_bytes = event->total_bytes = SL_EVENT_UNKNOWN;
	event->metadata = maker_metadata(m, 0, device, ns);
}

/* What the device had in use in a bin; 0 where no sample falls into it. */
static uint64_t used_in(const struct sl_device_state *device, uint32_t bin)
{
	const struct sl_line *used = device->used_line;

	return used && used->begun && bin >= used->first && bin <= used->bin ? used->bins[bin].max : 0;
}

/* Makes one sample event from the bins [from, to). */
static void add_sample(struct maker *m, const struct sl_device_state *device, uint64_t ns, uint64_t known_bytes, uint64_t unused,
		       uint32_t from, uint32_t to)
{
	struct sl_v3_event event = maker_event(m, device, ns, "sample");

	if (device->line && device->line->begun)
		maker_set_held(m, device, ns, known_bytes, unused, &event);
	event.interval_ms = (int64_t)(((uint64_t)(to - from) << m->process->model->timeline.shift) / 1000000);
	event.metadata = maker_metadata(m, 0, device, 0);
	set_sampled(m, device, ns, from, to, &event);
	maker_add(m, event);
}

static const struct sl_bin *bin_of(const struct sl_line *line, uint32_t bin)
{
	return line && line->begun && bin >= line->first && bin <= line->bin ? &line->bins[bin] : NULL;
}

/*
 * What the process held outside PyTorch at that time: the difference of the bin's means.  It is at most the difference of the
 * bin's maxima, because a long bin mixes states that came one after the other.
 */
static int64_t outside_at(const struct sl_model *model, const struct sl_device_state *device, uint32_t bin, uint64_t ns)
{
	const struct sl_bin *all = bin_of(device->line, bin), *segments = bin_of(device->torch.reserved, bin);
	int64_t outside = maker_at(model, device->line, ns) - maker_segments(model, device, ns);

	if (all && segments && outside > (int64_t)all->max - (int64_t)segments->max)
		outside = (int64_t)all->max - (int64_t)segments->max;
	return outside > 0 ? outside : 0;
}

/* What PyTorch kept unused when the process held most in the bin.  The means of tensors and of other memory are taken off. */
static uint64_t unused_at(const struct sl_model *model, const struct sl_device_state *device, uint32_t bin,
			  const struct sl_bin *known_bin)
{
	int64_t in_use;

	if (!device->torch.used)
		return 0;
	in_use = outside_at(model, device, bin, known_bin->max_ns) + maker_at(model, device->torch.allocated, known_bin->max_ns);
	return (int64_t)known_bin->max > in_use ? known_bin->max - (uint64_t)in_use : 0;
}

/* Adds a sample where the tensors of a group of bins were largest, which may not be where the process held most. */
static void add_most_tensors(struct maker *m, const struct sl_device_state *device, uint32_t from, uint32_t to)
{
	const struct sl_model *model = m->process->model;
	const struct sl_line *allocated = device->torch.allocated;
	const struct sl_bin *best = sl_timeline_highest(allocated, from, to);
	int64_t reserved, known_bytes;

	if (!best)
		return;
	reserved = maker_segments(model, device, best->max_ns);
	if (reserved < (int64_t)best->max)
		reserved = (int64_t)best->max;
	known_bytes = reserved + outside_at(model, device, (uint32_t)(best - allocated->bins), best->max_ns);
	add_sample(m, device, best->max_ns, (uint64_t)known_bytes, (uint64_t)reserved - best->max, from, to);
}

/* One sample for each group of bins, where the process held most in it; if several are equal, where the device held most. */
static void session_samples_device(struct maker *m, const struct sl_device_state *device, unsigned samples)
{
	const struct sl_line *line = device->line && device->line->begun ? device->line : device->used_line;
	uint32_t step;

	if (!line || !line->begun || !samples)
		return;
	if (device->torch.used && samples > 1)
		samples /= 2;
	step = (line->bin - line->first + samples) / samples;
	for (uint32_t b = line->first; b <= line->bin; b += step) {
		uint32_t top = b;

		for (uint32_t k = b + 1; k < b + step && k <= line->bin; k++)
			if (line->bins[k].max > line->bins[top].max ||
			    (line->bins[k].max == line->bins[top].max && used_in(device, k) > used_in(device, top)))
				top = k;
		add_sample(m, device, line->bins[top].max_ns, line->bins[top].max,
			   unused_at(m->process->model, device, top, &line->bins[top]), b, b + step);
		add_most_tensors(m, device, b, b + step);
	}
}

static void session_samples_peak(struct maker *m, const struct sl_device_state *device)
{
	struct sl_v3_event event;
	uint64_t unused;

	if (!device->known_peak)
		return;
	event = maker_event(m, device, device->known_peak_ns, "peak");
	sl_model_unused(&device->torch_at_peak, &unused);
	maker_set_held(m, device, device->known_peak_ns, device->known_peak, unused, &event);
	event.context = "Peak of this process";
	event.metadata = maker_metadata(m, 0, device, device->known_peak_ns);
	maker_add(m, event);
}

/* The maximum of resident memory in bins [from, to). */
static const struct sl_bin *most_resident(const struct sl_line *rss, uint32_t from, uint32_t to)
{
	const struct sl_bin *best = &rss->bins[from];

	for (uint32_t b = from; b < to && b <= rss->bin; b++)
		best = rss->bins[b].max > best->max ? &rss->bins[b] : best;
	return best;
}

/* For a process without a device, as Stormlog's CPU tracker does it: each change of its resident memory, and the peak. */
static void session_samples_resident(struct maker *m, const struct sl_line *rss, unsigned samples)
{
	uint32_t step = samples ? (rss->bin - rss->first + samples) / samples : 1;
	uint64_t peak = 0;

	step = step ? step : 1;
	for (uint32_t b = rss->first; b <= rss->bin; b += step) {
		const struct sl_bin *bin = most_resident(rss, b, b + step);
		int64_t change = (int64_t)bin->max - m->last_allocated;
		struct sl_v3_event event = maker_event(m, NULL, bin->max_ns, change < 0 ? "deallocation" : "allocation");

		event.allocated_bytes = event.reserved_bytes = event.used_bytes = (int64_t)bin->max;
		if (bin->max > peak) {
			struct sl_v3_event peak_event = event;

			peak = bin->max;
			peak_event.event_type = "peak";
			peak_event.context = sl_arena_printf(m->arena, "New CPU peak RSS: %s", SL_SIZE(peak));
			peak_event.change_bytes = change;
			sl_session_add_event(m->session, &peak_event);
		}
		if (!change)
			continue;
		event.context = sl_arena_printf(m->arena, "RSS %s by %s", change < 0 ? "decreased" : "increased",
						SL_SIZE((uint64_t)(change < 0 ? -change : change)));
		maker_add(m, event);
	}
}

/* Writes a process's ranges as phases of its session: phase_enter and phase_exit with their scope, as Stormlog does. */

/* "step_#" with index 12 -> "step_12" */
static const char *range_name(struct maker *m, uint32_t label, uint64_t step)
{
	const char *text = sl_defs_text(m->process->model->defs, m->process->model->labels.item[label].text);
	const char *mark = text ? strchr(text, '#') : NULL;

	if (!text || !*text)
		return "range";
	if (!mark || step == SL_UNKNOWN)
		return text;
	return sl_arena_printf(m->arena, "%.*s%llu%s", (int)(mark - text), text, (unsigned long long)step, mark + 1);
}

static const char *scope_id(struct maker *m, uint64_t serial)
{
	return sl_arena_printf(m->arena, "range-%llu", (unsigned long long)serial);
}

/* What the program said of the range; for a repeated key, the last value. */
static struct sl_value *attributes_of(struct maker *m, const struct sl_phase *phase)
{
	struct sl_value *attributes = sl_value_object(m->arena, phase->pair_count);

	for (unsigned i = 0; i < phase->pair_count; i++) {
		const char *text = sl_defs_text(m->process->model->defs, phase->pairs[i]);
		const char *value = text ? strchr(text, '=') : NULL;

		if (value)
			sl_value_set(attributes, sl_arena_printf(m->arena, "%.*s", (int)(value - text), text),
				     sl_value_of_text(value + 1));
	}
	return attributes;
}

/* Readers replay one stack per thread, so a range that is not properly nested gets a thread of its own. */
#define OWN_THREADS (1ll << 32)

static struct sl_value *scope_of(struct maker *m, const struct sl_phase *phase, bool exit)
{
	const struct sl_thread *thread = sl_defs_thread(m->process->model->defs, phase->thread);
	const char *name = range_name(m, phase->label, phase->step);
	struct sl_value *scope = sl_value_object(m->arena, 10);
	unsigned depth = phase->overlaps ? 0 : phase->depth;
	struct sl_value *path = sl_arena_alloc(m->arena, (depth + 1) * sizeof(*path));

	for (unsigned i = 0; i < depth; i++)
		path[i] = sl_value_of_text(range_name(m, phase->outer[i].label, phase->outer[i].step));
	path[depth] = sl_value_of_text(name);
	sl_value_set(scope, "action", sl_value_of_text(exit ? "exit" : "enter"));
	sl_value_set(scope, "name", sl_value_of_text(name));
	sl_value_set(scope, "path", (struct sl_value){.kind = SL_VALUE_ARRAY, .count = depth + 1, .items = path});
	sl_value_set(scope, "depth", sl_value_of_int(depth + 1));
	sl_value_set(scope, "scope_id", sl_value_of_text(scope_id(m, phase->serial)));
	sl_value_set(scope, "parent_scope_id", sl_value_of_text(depth ? scope_id(m, phase->outer[depth - 1].serial) : NULL));
	sl_value_set(scope, "thread_id",
		     sl_value_of_int(phase->overlaps	     ? OWN_THREADS + (int64_t)phase->serial
				     : thread && thread->tid ? thread->tid
							     : phase->thread));
	sl_value_set(scope, "thread_name", sl_value_of_text(thread && thread->name ? thread->name : "thread"));
	sl_value_set(scope, "sequence", sl_value_of_int((int64_t)(exit ? phase->end_order : phase->begin_order)));
	if (phase->pair_count)
		sl_value_set(scope, "attributes", *attributes_of(m, phase));
	return scope;
}

/* `first`: the device of ranges that held nothing, may be NULL.  A range that never closed has an enter and no exit. */
static void add_session_phases(struct maker *m, const struct sl_phase *phase, const struct sl_device_state *first)
{
	for (int exit = 0; exit < (phase->end_ns ? 2 : 1); exit++) {
		const struct sl_possession *possession = exit ? &phase->after : &phase->before;
		const struct sl_device_state *device =
			possession->device < 0 ? first : m->process->model->devices[possession->device + 1];
		uint64_t ns = exit ? phase->end_ns : phase->begin_ns;
		struct sl_v3_event event = maker_event(m, device, ns, exit ? "phase_exit" : "phase_enter");

		if (possession->device >= 0)
			maker_set_held(m, device, ns, possession->known_bytes, possession->unused, &event);
		else if (!first && m->process->model->host.rss)
			event.allocated_bytes = event.reserved_bytes = event.used_bytes =
				maker_at(m->process->model, m->process->model->host.rss, ns);
		event.context = range_name(m, phase->label, phase->step);
		event.metadata = maker_metadata(m, 1, device, ns);
		sl_value_set((struct sl_value *)event.metadata, "phase_scope", *scope_of(m, phase, exit));
		maker_add(m, event);
	}
}

#define OOMS_MAX   64
#define ALERTS_MAX 64

/* What is known of the exact moment of an error; a bin would only give a mean.  What others hold is in their own sinks. */
static void set_exactly(struct sl_v3_event *event, const struct sl_model *model, const struct sl_oom *oom)
{
	int64_t unused = event->reserved_bytes - event->allocated_bytes, own;

	if (oom->device < 0)
		return;
	event->reserved_bytes = (int64_t)oom->live_bytes;
	event->allocated_bytes = event->reserved_bytes > unused ? event->reserved_bytes - unused : 0;
	if (event->active_bytes != SL_EVENT_UNKNOWN) {
		event->active_bytes = event->allocated_bytes;
		event->inactive_bytes = event->reserved_bytes - event->allocated_bytes;
	}
	if (oom->free_bytes == SL_UNKNOWN || oom->total_bytes == SL_UNKNOWN || oom->free_bytes > oom->total_bytes) {
		event->used_bytes = event->used_bytes > event->reserved_bytes ? event->used_bytes : event->reserved_bytes;
		return;
	}
	event->total_bytes = (int64_t)oom->total_bytes;
	event->free_bytes = (int64_t)oom->free_bytes;
	own = event->total_bytes - event->free_bytes - maker_at(model, model->devices[oom->device + 1]->others_line, oom->time_ns);
	event->used_bytes = own > event->reserved_bytes ? own : event->reserved_bytes;
}

static void add_ooms(struct maker *m)
{
	const struct sl_model *model = m->process->model;
	char bundle[512];

	for (size_t i = 0; i < model->ooms.count && i < OOMS_MAX; i++) {
		const struct sl_oom *oom = &model->ooms.item[i];
		const struct sl_hook *hook = sl_header_hook(model->header, oom->api);
		const struct sl_device_state *device = oom->device >= 0 ? model->devices[oom->device + 1] : NULL;
		struct sl_v3_event event;
		struct sl_value *metadata = maker_metadata(m, 5, device, oom->free_bytes == SL_UNKNOWN ? oom->time_ns : 0);

		if (oom->group != i)
			continue;
		event = maker_event(m, device, oom->time_ns, "error");
		set_exactly(&event, model, oom);
		sl_value_set(metadata, "oom_reason", sl_value_of_text(sl_bundle_reason(oom)));
		if (sl_bundle_path(m->process, oom, bundle, sizeof(bundle)))
			sl_value_set(metadata, "oom_dump_path", sl_value_of_text(sl_arena_strdup(m->arena, bundle)));
		sl_value_set(metadata, "api", sl_value_of_text(hook ? hook->plain : NULL));
		sl_value_set(metadata, "requested_bytes", sl_value_of_int((int64_t)oom->requested_bytes));
		sl_value_set(metadata, "severity", sl_value_of_text(oom->recovered == 1 ? "warning" : "critical"));
		event.context = sl_arena_printf(m->arena, "%s: out of memory", hook ? hook->plain : "allocation");
		event.metadata = metadata;
		maker_add(m, event);
	}
}

static void add_lifecycle(struct maker *m, const struct sl_device_state *device, bool start)
{
	const struct sl_trace *trace = m->process->trace;
	const struct sl_model *model = m->process->model;
	uint64_t ns = start ? trace->header.monotonic_ns : model->now_ns;
	struct sl_v3_event event;
	struct sl_value *metadata;

	if (!start && trace->status != SL_STATUS_COMPLETED)
		return;
	event = maker_event(m, device, ns, start ? "start" : "stop");
	event.timestamp_ns = (int64_t)(start ? m->process->started_unix_ns : m->process->ended_unix_ns);
	metadata = maker_metadata(m, 2, device, ns);
	if (model->phases.count < model->phases_seen) { /* ranges were thinned out; the session says so */
		sl_value_set(metadata, "label_entries", sl_value_of_int((int64_t)model->phases_seen));
		sl_value_set(metadata, "label_entries_with_events", sl_value_of_int((int64_t)model->phases.count));
	}
	event.metadata = metadata;
	event.context = start ? "Recording started" : "Process ended";
	maker_add(m, event);
}

static void summarize(const struct sl_process *process, struct sl_arena *arena, struct sl_session *session)
{
	static const enum sl_session_status statuses[] = {SL_SESSION_COMPLETED, SL_SESSION_INTERRUPTED, SL_SESSION_RUNNING,
							  SL_SESSION_INCOMPLETE};
	const struct sl_header *header = &process->trace->header;
	const char **source = sl_arena_alloc(arena, sizeof(*source));
	bool alone = header->rank < 0 || header->world_size <= 1;

	*source = sl_arena_strdup(arena, sl_paths_name(process->trace->name));
	session->kind = SL_SESSION_NATIVE;
	session->sources = source;
	session->source_count = 1;
	session->summary = (struct sl_session_summary){
		.session_id = process->session_id,
		.host = header->host && *header->host ? header->host : "unknown",
		.source = *source,
		.job_id = header->job_id && *header->job_id ? header->job_id : NULL,
		.status = process->trace->damage.damaged ? SL_SESSION_INCOMPLETE : statuses[process->trace->status],
		.started_at_ns = (int64_t)process->started_unix_ns,
		.ended_at_ns = (int64_t)process->ended_unix_ns,
		.has_end = process->trace->status != SL_STATUS_RUNNING,
		.pid = header->pid,
		.rank = alone ? 0 : header->rank,
		.local_rank = alone || header->local_rank < 0 ? 0 : header->local_rank,
		.world_size = alone ? 1 : header->world_size,
	};
}

static void add_alert(void *context, const struct sl_v3_event *event)
{
	struct maker *m = context;

	if (m->alerts++ < ALERTS_MAX)
		sl_session_add_event(m->session, event);
}

/* Alerts for one device, whose samples are the events from `from` on. */
static void add_alerts(struct maker *m, const struct sl_device_state *device, size_t from,
		       const struct sl_alert_thresholds *thresholds)
{
	size_t count = m->session->count - from;
	struct sl_v3_event *samples = sl_arena_alloc(m->arena, (count + 1) * sizeof(*samples));
	struct sl_series series = {.events = sl_arena_alloc(m->arena, (count + 1) * sizeof(*series.events))};

	for (size_t i = 0; i < count; i++) {
		samples[i] = m->session->events[from + i];
		samples[i].total_bytes = maker_total(m, device);
		series.events[series.count++] = &samples[i];
	}
	sl_alerts_derive(&series, thresholds ? thresholds : &sl_alert_defaults, m->arena, add_alert, m);
}

/* Adds an event for each call of a collective. */
static void add_marks(struct maker *m, const struct sl_device_state *device)
{
	const struct sl_model *model = m->process->model;

	for (size_t i = 0; i < model->collectives.count; i++) {
		const struct sl_collective *mark = &model->collectives.item[i];
		struct sl_v3_event event = maker_event(m, device, mark->begin_ns, "collective");
		struct sl_value *metadata = maker_metadata(m, 4, device, mark->begin_ns);

		sl_value_set(metadata, "api", sl_value_of_text(mark->name));
		sl_value_set(metadata, "duration_ns", sl_value_of_int((int64_t)(mark->end_ns - mark->begin_ns)));
		if (mark->communicator)
			sl_value_set(
				metadata, "communicator",
				sl_value_of_text(sl_arena_printf(m->arena, "%016llx", (unsigned long long)mark->communicator)));
		if (mark->bytes)
			sl_value_set(metadata, "message_bytes", sl_value_of_int((int64_t)mark->bytes));
		event.context = mark->name;
		event.metadata = metadata;
		maker_add(m, event);
	}
}

static unsigned samples_each(const struct sl_report *report)
{
	unsigned each = report->process_count ? SL_SESSIONS_SAMPLES / report->process_count : 0;

	if (report->options.samples)
		return report->options.samples;
	return each > SL_SESSION_SAMPLES ? SL_SESSION_SAMPLES : each < SL_SESSION_SAMPLES_LEAST ? SL_SESSION_SAMPLES_LEAST : each;
}

void sl_sessions_make(const struct sl_report *report, const struct sl_process *process, struct sl_arena *arena,
		      struct sl_session *session)
{
	unsigned samples = samples_each(report);
	const struct sl_model *model = process->model;
	struct maker m = {.process = process, .arena = arena, .session = session, .backend = sl_api_names_backend(model)};
	const struct sl_device_state *first = NULL;
	unsigned devices = 0;
	size_t from;

	*session = (struct sl_session){0};
	summarize(process, arena, session);
	for (size_t d = 1; d < SL_COUNT(model->devices); d++)
		if (model->devices[d] && model->devices[d]->used) {
			first = first ? first : model->devices[d];
			devices++;
		}
	if (!devices && model->host.rss)
		m.backend = "cpu";
	m.plain = maker_metadata(&m, 0, NULL, 0);
	add_lifecycle(&m, first, true);
	if (!strcmp(m.backend, "cpu"))
		session_samples_resident(&m, model->host.rss, samples);
	for (size_t d = 1; d < SL_COUNT(model->devices) && devices; d++)
		if (model->devices[d] && model->devices[d]->used) {
			m.last_allocated = 0;
			m.bins_done = 0;
			from = session->count;
			session_samples_device(&m, model->devices[d], samples / devices);
			add_alerts(&m, model->devices[d], from, report->options.alerts);
			session_samples_peak(&m, model->devices[d]);
		}
	add_ooms(&m);
	for (size_t i = 0; i < model->phases.count; i++)
		add_session_phases(&m, &model->phases.item[i], first);
	add_marks(&m, first);
	add_lifecycle(&m, first, false);
	sl_event_sort(session->events, session->count);
	/* changes are ordered by time, and each device has a line of its own */
	for (size_t d = 0; d < SL_COUNT(model->devices); d++) {
		int64_t last = 0;

		for (size_t i = 0; model->devices[d] && i < session->count; i++)
			if (session->events[i].device_id == (int64_t)d - 1) {
				session->events[i].change_bytes = session->events[i].allocated_bytes - last;
				last = session->events[i].allocated_bytes;
			}
	}
}

struct sl_session *sl_sessions_all(const struct sl_report *report, struct sl_arena *arena)
{
	struct sl_session *sessions = sl_memory_must(calloc(report->process_count + 1, sizeof(*sessions)));

	for (unsigned i = 0; i < report->process_count; i++)
		sl_sessions_make(report, &report->processes[i], arena, &sessions[i]);
	return sessions;
}

/* Names the call, its size, and where the memory was requested. */
static void say_call(struct maker *m, struct sl_process *process, const struct sl_device_state *device,
		     const struct sl_known_at *change, struct sl_v3_event *event)
{
	const struct sl_hook *hook = sl_header_hook(process->model->header, change->api);
	const struct sl_site *site = &process->model->sites.item[change->site];
	struct sl_value *metadata = maker_metadata(m, 3, device, change->end_ns);
	char where[512];

	sl_owners_line(process, site->stack, 3, where, sizeof(where));
	event->context = hook ? hook->plain : NULL;
	sl_value_set(metadata, "api", sl_value_of_text(event->context));
	sl_value_set(metadata, "bytes", sl_value_of_int(event->change_bytes < 0 ? -event->change_bytes : event->change_bytes));
	sl_value_set(metadata, "where", sl_value_of_text(where[0] ? sl_arena_strdup(m->arena, where) : NULL));
	event->metadata = metadata;
}

/* A sample that says what the one before said: of a pause there may be more than a bundle has events. */
static bool is_idle(const struct sl_v3_event *sample, const struct sl_v3_event *before)
{
	return !strcmp(sample->event_type, "sample") && !strcmp(before->event_type, "sample") &&
	       sample->allocated_bytes == before->allocated_bytes && sample->reserved_bytes == before->reserved_bytes &&
	       sample->used_bytes == before->used_bytes && sample->device_id == before->device_id;
}

struct sl_v3_event *sl_sessions_before(struct sl_process *process, struct sl_arena *arena, const struct sl_session *session,
				       const struct sl_oom *oom, size_t *count)
{
	const struct sl_device_state *device = oom->device >= 0 ? process->model->devices[oom->device + 1] : NULL;
	struct maker m = {.process = process, .arena = arena, .backend = sl_api_names_backend(process->model)};
	struct sl_v3_event *events = sl_memory_must(calloc(session->count + oom->change_count + 1, sizeof(*events)));
	int64_t when = (int64_t)sl_process_unix(process, oom->time_ns), last = 0;
	size_t at = 0, room = device && device->recent_mask ? device->recent_mask + 1 : SL_RECENT; /* summaries have none */

	for (size_t i = 0; i < session->count && session->events[i].timestamp_ns <= when; i++)
		if (!i || !is_idle(&session->events[i], &session->events[i - 1]))
			events[at++] = session->events[i];
	m.plain = maker_metadata(&m, 0, device, 0);
	for (unsigned i = 0; i < oom->change_count; i++) {
		const struct sl_known_at *change = &oom->changes[i];
		int64_t known_bytes = (int64_t)change->known_bytes;
		struct sl_v3_event event =
			maker_event(&m, device, change->end_ns, known_bytes < last ? "deallocation" : "allocation");

		event.allocated_bytes += known_bytes - event.reserved_bytes;
		event.allocated_bytes = event.allocated_bytes < 0 ? 0 : event.allocated_bytes;
		event.reserved_bytes = known_bytes;
		event.change_bytes = known_bytes - last;
		if (event.active_bytes != SL_EVENT_UNKNOWN) {
			event.active_bytes = event.allocated_bytes;
			event.inactive_bytes = known_bytes - event.allocated_bytes;
		}
		maker_set_used(&m, device, change->end_ns, &event);
		say_call(&m, process, device, change, &event);
		last = known_bytes;
		/* if the ring is full, the size of its first change is unknown */
		if ((i || oom->change_count < room) && event.timestamp_ns <= when)
			events[at++] = event;
	}
	sl_event_sort(events, at);
	*count = at;
	return events;
}

static unsigned ranks_of(const struct sl_report *report)
{
	unsigned ranks = 0;

	for (unsigned i = 0; i < report->process_count; i++)
		ranks += report->processes[i].trace->header.rank >= 0;
	return ranks;
}

void sl_sessions_add(const struct sl_report *report, struct sl_telemetry *telemetry)
{
	struct sl_session *sessions = sl_sessions_all(report, &telemetry->arena);

	for (unsigned i = 0; i < report->process_count; i++)
		sl_telemetry_add_session(telemetry, &sessions[i]);
	free(sessions);
}

struct sl_telemetry *sl_sessions_telemetry(struct sl_report *report)
{
	struct sl_telemetry *telemetry = report->telemetry ?: sl_telemetry_new();
	const struct sl_session *merged;
	char reason[160];

	if (report->telemetry)
		return telemetry;
	report->telemetry = telemetry;
	sl_sessions_add(report, telemetry);
	sl_telemetry_finish(telemetry, NULL);
	/* the ranks of a run share a session, whatever their launcher said of a job */
	if (report->process_count > 1 && ranks_of(report) == report->process_count &&
	    (merged = sl_telemetry_merge_ranks(telemetry, reason, sizeof(reason))))
		telemetry->selected = merged;
	sl_session_answers_all(telemetry, &(report->options.emit ?: &sl_emit_defaults)->thresholds);
	return telemetry;
}
