/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/upstream.h"

#include "analyzer/base/format.h"

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
static void set_sampled(struct sl_maker *m, const struct sl_device_state *device, uint64_t ns, uint32_t from, uint32_t to,
			struct sl_v3_event *event)
{
	const struct sl_timeline *timeline = &m->process->model->timeline;
	uint64_t begin = timeline->begin_ns + ((uint64_t)from << timeline->shift),
		 end = timeline->begin_ns + ((uint64_t)to << timeline->shift) - 1;

	from = from > m->told ? from : m->told;
	m->told = to;
	if (was_sampled(device, from, to)) {
		sl_maker_set_hidden(m, device, ns, (int64_t)sl_timeline_max(timeline, device->hidden_line, begin, end), event);
		return;
	}
	event->free_bytes = event->total_bytes = SL_EVENT_UNKNOWN;
	event->metadata = sl_maker_metadata(m, 0, device, ns);
}

/* What the device had in use in a bin; 0 where no sample falls into it. */
static uint64_t used_in(const struct sl_device_state *device, uint32_t bin)
{
	const struct sl_line *used = device->used_line;

	return used && used->begun && bin >= used->first && bin <= used->bin ? used->bins[bin].max : 0;
}

/* Makes one sample event from the bins [from, to). */
static void add_sample(struct sl_maker *m, const struct sl_device_state *device, uint64_t ns, uint64_t known, uint64_t unused,
		       uint32_t from, uint32_t to)
{
	struct sl_v3_event event = sl_maker_event(m, device, ns, "sample");

	if (device->line && device->line->begun)
		sl_maker_set_held(m, device, ns, known, unused, &event);
	event.interval_ms = (int64_t)(((uint64_t)(to - from) << m->process->model->timeline.shift) / 1000000);
	event.metadata = sl_maker_metadata(m, 0, device, 0);
	set_sampled(m, device, ns, from, to, &event);
	sl_maker_add(m, event);
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
	int64_t outside = sl_maker_at(model, device->line, ns) - sl_maker_segments(model, device, ns);

	if (all && segments && outside > (int64_t)all->max - (int64_t)segments->max)
		outside = (int64_t)all->max - (int64_t)segments->max;
	return outside > 0 ? outside : 0;
}

/* What PyTorch kept unused when the process held most in the bin.  The means of tensors and of other memory are taken off. */
static uint64_t unused_at(const struct sl_model *model, const struct sl_device_state *device, uint32_t bin,
			  const struct sl_bin *known)
{
	int64_t in_use;

	if (!device->torch.used)
		return 0;
	in_use = outside_at(model, device, bin, known->max_ns) + sl_maker_at(model, device->torch.allocated, known->max_ns);
	return (int64_t)known->max > in_use ? known->max - (uint64_t)in_use : 0;
}

/* Adds a sample where the tensors of a group of bins were largest, which may not be where the process held most. */
static void add_most_tensors(struct sl_maker *m, const struct sl_device_state *device, uint32_t from, uint32_t to)
{
	const struct sl_model *model = m->process->model;
	const struct sl_line *allocated = device->torch.allocated;
	const struct sl_bin *best = NULL;
	int64_t reserved, known;

	for (uint32_t b = from; allocated && allocated->begun && b < to; b++)
		if (b >= allocated->first && b <= allocated->bin && (!best || allocated->bins[b].max > best->max))
			best = &allocated->bins[b];
	if (!best)
		return;
	reserved = sl_maker_segments(model, device, best->max_ns);
	if (reserved < (int64_t)best->max)
		reserved = (int64_t)best->max;
	known = reserved + outside_at(model, device, (uint32_t)(best - allocated->bins), best->max_ns);
	add_sample(m, device, best->max_ns, (uint64_t)known, (uint64_t)reserved - best->max, from, to);
}

void sl_session_samples_device(struct sl_maker *m, const struct sl_device_state *device, unsigned samples)
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

void sl_session_samples_peak(struct sl_maker *m, const struct sl_device_state *device)
{
	struct sl_v3_event event;
	uint64_t unused;

	if (!device->known_peak)
		return;
	event = sl_maker_event(m, device, device->known_peak_ns, "peak");
	sl_model_unused(&device->torch_at_peak, &unused);
	sl_maker_set_held(m, device, device->known_peak_ns, device->known_peak, unused, &event);
	event.context = "Peak of this process";
	event.metadata = sl_maker_metadata(m, 0, device, device->known_peak_ns);
	sl_maker_add(m, event);
}

/* The maximum of resident memory in bins [from, to). */
static const struct sl_bin *most_resident(const struct sl_line *rss, uint32_t from, uint32_t to)
{
	const struct sl_bin *best = &rss->bins[from];

	for (uint32_t b = from; b < to && b <= rss->bin; b++)
		best = rss->bins[b].max > best->max ? &rss->bins[b] : best;
	return best;
}

void sl_session_samples_resident(struct sl_maker *m, const struct sl_line *rss, unsigned samples)
{
	uint32_t step = samples ? (rss->bin - rss->first + samples) / samples : 1;
	uint64_t peak = 0;

	step = step ? step : 1;
	for (uint32_t b = rss->first; b <= rss->bin; b += step) {
		const struct sl_bin *bin = most_resident(rss, b, b + step);
		int64_t change = (int64_t)bin->max - m->last_allocated;
		struct sl_v3_event event = sl_maker_event(m, NULL, bin->max_ns, change < 0 ? "deallocation" : "allocation");

		event.allocated_bytes = event.reserved_bytes = event.used_bytes = (int64_t)bin->max;
		if (bin->max > peak) {
			struct sl_v3_event most = event;

			peak = bin->max;
			most.event_type = "peak";
			most.context = sl_arena_printf(m->arena, "New CPU peak RSS: %s", SL_SIZE(peak));
			most.change_bytes = change;
			sl_session_add_event(m->session, &most);
		}
		if (!change)
			continue;
		event.context = sl_arena_printf(m->arena, "RSS %s by %s", change < 0 ? "decreased" : "increased",
						SL_SIZE((uint64_t)(change < 0 ? -change : change)));
		sl_maker_add(m, event);
	}
}
