/* SPDX-License-Identifier: MIT */
/* Samples of whole devices and of the process: memory that the process's calls do not show. */

#include "analyzer/model/replay/replay.h"

#define FOLLOWED_NS (SL_NS_PER_S / 4)

static void take_neighbours(struct sl_oom *oom, const struct sl_device_state *device)
{
	oom->neighbour_count = 0;
	for (size_t i = 0; i < device->present.count; i++) {
		const struct sl_neighbour *one = &device->neighbours.item[device->present.item[i]];
		unsigned at = oom->neighbour_count;

		if (!one->bytes || (at == SL_NEIGHBOURS_MAX && oom->neighbours[at - 1].bytes >= one->bytes))
			continue;
		if (at == SL_NEIGHBOURS_MAX)
			at--;
		else
			oom->neighbour_count++;
		for (; at && oom->neighbours[at - 1].bytes < one->bytes; at--)
			oom->neighbours[at] = oom->neighbours[at - 1];
		oom->neighbours[at].pid = one->pid;
		oom->neighbours[at].bytes = one->bytes;
	}
}

void sl_samples_neighbours(struct sl_oom *oom, const struct sl_device_state *device)
{
	oom->context_bytes = sl_sample_wait_contexts(device);
	oom->module_bytes = device->module_bytes;
	take_neighbours(oom, device);
}

/*
 * Called at the first sample of a device, and when the context is known.  An error there within the second before the last
 * sample takes its neighbours and the context from it.
 */
static void neighbours_sampled(struct sl_model *model, const struct sl_device_state *device)
{
	for (size_t i = model->ooms.count; i--;) {
		struct sl_oom *oom = &model->ooms.item[i];

		if (oom->device == device->device && oom->time_ns + SL_NS_PER_S > device->sampled.time_ns)
			sl_samples_neighbours(oom, device);
	}
}

/* What was in use at the error beside the process's own; 0: not known. */
static uint64_t rest_of(const struct sl_oom *oom)
{
	uint64_t own = oom->live_bytes + oom->context_bytes + oom->module_bytes, used = oom->total_bytes - oom->free_bytes;

	return oom->total_bytes != SL_UNKNOWN && oom->free_bytes <= oom->total_bytes && used > own ? used - own : 0;
}

/*
 * True: neighbours hold more by the last sample than by the one before the error, and that was in use at the error.  One that
 * holds even more than was in use went on growing.
 */
static bool explains_more(const struct sl_oom *oom, const struct sl_device_state *device)
{
	uint64_t then = 0, now = 0, rest = rest_of(oom);

	for (unsigned i = 0; i < oom->neighbour_count; i++)
		then += oom->neighbours[i].bytes;
	for (size_t i = 0; i < device->present.count; i++)
		now += device->neighbours.item[device->present.item[i]].bytes;
	return now > then && rest > then && (now <= rest || device->present.count == 1);
}

/* To be called at a sample: it may list a neighbour that came after the previous sample, at before_ns, but before an error. */
static void neighbours_followed(struct sl_model *model, const struct sl_device_state *device, uint64_t before_ns)
{
	for (size_t i = model->ooms.count; i--;) {
		struct sl_oom *oom = &model->ooms.item[i];

		if (oom->time_ns < before_ns || oom->time_ns + FOLLOWED_NS < device->sampled.time_ns)
			break;
		if (oom->device != device->device || !explains_more(oom, device))
			continue;
		take_neighbours(oom, device);
		if (oom->neighbour_count == 1 && oom->neighbours[0].bytes > rest_of(oom))
			oom->neighbours[0].bytes = rest_of(oom);
	}
}

static void keep_max(uint64_t *peak, uint64_t value)
{
	if (value != SL_UNKNOWN && (*peak == SL_UNKNOWN || value > *peak))
		*peak = value;
}

static void host(struct sl_model *model, const struct sl_sample *sample)
{
	struct sl_host *host = &model->host;

	if (sample->cgroup_id != SL_UNKNOWN && sample->cgroup_id != host->cgroup_id) {
		if (host->cgroup_id != SL_UNKNOWN) /* the process was moved */
			host->cgroup_limit = host->cgroup_peak = host->cgroup_held = host->oom_kills = host->oom_kills_before =
				SL_UNKNOWN;
		host->cgroup_id = sample->cgroup_id;
	}
	keep_max(&host->rss_peak, sample->rss_bytes);
	keep_max(&host->cgroup_held, sample->cgroup_bytes);
	keep_max(&host->cgroup_peak, sample->cgroup_peak_bytes != SL_UNKNOWN ? sample->cgroup_peak_bytes : sample->cgroup_bytes);
	if (sample->cgroup_limit_bytes != SL_UNKNOWN)
		host->cgroup_limit = sample->cgroup_limit_bytes;
	if (sample->oom_kills != SL_UNKNOWN) {
		host->oom_kills = sample->oom_kills;
		if (host->oom_kills_before == SL_UNKNOWN)
			host->oom_kills_before = sample->oom_kills;
	}
	if (sample->rss_bytes != SL_UNKNOWN) {
		if (!host->rss)
			host->rss = sl_timeline_add(&model->timeline, SL_LINE_RSS, -1, 0);
		sl_timeline_set(&model->timeline, host->rss, model->now_ns, sample->rss_bytes, SL_NO_SITE);
	}
	if (sample->cgroup_bytes != SL_UNKNOWN) {
		if (!host->cgroup)
			host->cgroup = sl_timeline_add(&model->timeline, SL_LINE_CGROUP, -1, 0);
		sl_timeline_set(&model->timeline, host->cgroup, model->now_ns, sample->cgroup_bytes, SL_NO_SITE);
	}
}

/* The most and the least held from begin_ns on; SL_UNKNOWN: more changes followed than are kept. */
static uint64_t most_known_since(const struct sl_device_state *device, uint64_t begin_ns, uint64_t *min)
{
	uint64_t max = 0;

	*min = SL_UNKNOWN;
	for (uint64_t back = 1; back <= device->changes; back++) {
		const struct sl_known_at *change = &device->recent[(device->changes - back) & device->recent_mask];

		if (back > device->recent_mask + 1)
			return SL_UNKNOWN;
		max = change->known_bytes > max ? change->known_bytes : max;
		*min = change->known_bytes < *min ? change->known_bytes : *min;
		/* this change was over when the sample began, so what was before it does not count */
		if (change->end_ns < begin_ns)
			return max;
	}
	*min = 0; /* before the first change nothing was held */
	return max;
}

/* True: the process's memory, contexts and code included, did not change since begin_ns. */
static bool is_steady(const struct sl_device_state *device, uint64_t begin_ns)
{
	if (device->code_ns >= begin_ns)
		return false;
	return !device->changes || device->recent[(device->changes - 1) & device->recent_mask].end_ns < begin_ns;
}

static struct sl_neighbour *neighbour(struct sl_model *model, struct sl_device_state *device, int64_t pid)
{
	uint32_t at = sl_idmap_claim(&device->neighbour_ids, (uint64_t)pid, device->neighbours.count);

	if (at == device->neighbours.count)
		*SL_PUSH(&device->neighbours) = (struct sl_neighbour){.pid = pid, .first = sl_labels_instant(model, 0)};
	return &device->neighbours.item[at];
}

/* What others hold, by the driver's list, which names the process itself or not. */
static uint64_t held_by_others(const struct sl_sample *sample, int64_t pid)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < sample->process_count; i++)
		bytes += sample->processes[i].pid != pid ? sample->processes[i].bytes : 0;
	return bytes;
}

/*
 * True: a server of MPS, or numbers of another container, hold what this process is known to hold: less is left of the device
 * beside them.
 */
static bool lists_own_as_others(const struct sl_model *model, const struct sl_device_state *device, const struct sl_sample *sample)
{
	uint64_t others = held_by_others(sample, model->header->pid);

	return sample->process_bytes == SL_UNKNOWN && sample->used_bytes != SL_UNKNOWN &&
	       (sample->used_bytes < others || sample->used_bytes - others < device->known_bytes);
}

static void neighbours(struct sl_model *model, struct sl_device_state *device, const struct sl_sample *sample)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < device->present.count; i++)
		device->neighbours.item[device->present.item[i]].bytes = 0;
	device->present.count = 0;
	if (lists_own_as_others(model, device, sample))
		return;
	for (unsigned i = 0; i < sample->process_count; i++) {
		struct sl_neighbour *one;

		if (sample->processes[i].pid == model->header->pid)
			continue;
		one = neighbour(model, device, sample->processes[i].pid);
		one->bytes = sample->processes[i].bytes;
		one->last_ns = sample->time_ns;
		*SL_PUSH(&device->present) = (uint32_t)(one - device->neighbours.item);
		if (one->bytes > one->peak_bytes)
			one->peak_bytes = one->bytes;
		bytes += one->bytes;
	}
	if (bytes <= device->crowd_bytes)
		return;
	device->crowd_bytes = bytes;
	device->crowd.count = 0;
	for (size_t i = 0; i < device->present.count; i++) {
		const struct sl_neighbour *one = &device->neighbours.item[device->present.item[i]];

		*SL_PUSH(&device->crowd) = (struct sl_neighbour_then){one->pid, one->bytes};
	}
}

/*
 * The best figure of a sample.  In a container the driver may list this process under the host's number, which is unknown here.
 * Then less is left of the device than this process is known to hold.
 */
static enum sl_figure figure_of(const struct sl_model *model, const struct sl_device_state *device, const struct sl_sample *sample,
				uint64_t *bytes)
{
	uint64_t others = held_by_others(sample, model->header->pid);

	*bytes = sample->process_bytes;
	if (*bytes != SL_UNKNOWN)
		return SL_FIGURE_OWN;
	if (sl_device_state_shares_host(device))
		return SL_FIGURE_NONE;
	*bytes = sample->used_bytes;
	if (device->figure == SL_FIGURE_OWN && device->hidden_last_bytes != SL_UNKNOWN &&
	    sample->used_bytes < others + device->hidden_last_bytes) {
		*bytes = 0; /* it is not listed any more, and there is no room for what it took */
		return SL_FIGURE_OWN;
	}
	if (!others || !device->known_bytes || lists_own_as_others(model, device, sample))
		return SL_FIGURE_DEVICE;
	*bytes -= others;
	return SL_FIGURE_LESS_OTHERS;
}

/* Drops what samples of a worse figure have shown. */
static void begin_again(struct sl_device_state *device, enum sl_figure figure)
{
	device->figure = figure;
	device->hidden_peak_bytes = device->hidden_last_bytes = SL_UNKNOWN;
	device->unrounded = device->fresh_from = 0;
	for (size_t i = 0; i < device->parts.count; i++)
		device->parts.item[i].peak_bytes = 0;
	if (device->hidden_line)
		sl_timeline_restart(device->hidden_line);
	if (device->samples_line)
		sl_timeline_restart(device->samples_line);
}

static void settle(struct sl_model *model, struct sl_device_state *device)
{
	sl_sample_wait_settle(model, device);
	if (!device->context_bytes || device->sampled.context_filled)
		return;
	device->sampled.context_filled = true;
	neighbours_sampled(model, device);
}

static void device(struct sl_model *model, const struct sl_sample *sample)
{
	struct sl_device_state *device = sl_ledger_device(model, sample->device);
	size_t size = sample->source.size < sizeof(device->source) - 1 ? sample->source.size : sizeof(device->source) - 1;
	uint64_t before_ns = device->last_sample_ns, bytes;
	enum sl_figure figure;

	device->used = true;
	if (sample->source.text) {
		memcpy(device->source, sample->source.text, size);
		device->source[size] = 0;
	}
	if (sample->total_bytes != SL_UNKNOWN)
		device->total_bytes = sample->total_bytes;
	if (sample->used_bytes == SL_UNKNOWN)
		return;
	if (device->last_sample_ns && sample->time_ns - device->last_sample_ns > device->sample_gap_ns)
		device->sample_gap_ns = sample->time_ns - device->last_sample_ns;
	device->last_sample_ns = sample->time_ns;
	keep_max(&device->used_peak_bytes, sample->used_bytes);
	device->used_last_bytes = sample->used_bytes;
	if (!device->used_line)
		device->used_line = sl_timeline_add(&model->timeline, SL_LINE_USED, device->device, 0);
	sl_timeline_set(&model->timeline, device->used_line, model->now_ns, sample->used_bytes, SL_NO_SITE);
	settle(model, device);
	figure = figure_of(model, device, sample, &bytes);
	if (figure == SL_FIGURE_NONE) {
		neighbours(model, device, sample);
		return;
	}
	if (figure > device->figure)
		begin_again(device, figure);
	if (device->figure > SL_FIGURE_DEVICE && figure == device->figure) {
		uint64_t others = sample->used_bytes > bytes ? sample->used_bytes - bytes : 0;

		if (!device->others_line)
			device->others_line = sl_timeline_add(&model->timeline, SL_LINE_OTHERS, device->device, 0);
		else if (others != device->others_line->value) /* in a container NVML lists none of them */
			device->shared = true;
		sl_timeline_set(&model->timeline, device->others_line, model->now_ns, others, SL_NO_SITE);
	}
	device->sampled.begin_ns = sample->begin_ns;
	device->sampled.time_ns = sample->time_ns;
	device->sampled.figure = bytes;
	device->sampled.known_max =
		figure < device->figure ? SL_UNKNOWN : most_known_since(device, sample->begin_ns, &device->sampled.known_min);
	device->sampled.process = sample->process_bytes;
	device->sampled.at = sl_labels_instant(model, 0);
	device->sampled.steady = is_steady(device, sample->begin_ns);
	device->sampled.pool_keeps = sl_model_row(model, SL_KIND_pool, device->device + 1)->frees;
	neighbours(model, device, sample);
	device->shared |= device->present.count != 0;
	if (!before_ns)
		neighbours_sampled(model, device);
	else
		neighbours_followed(model, device, before_ns);
}

void sl_samples_apply(struct sl_model *model, const struct sl_sample *sample)
{
	if (sample->device >= 0)
		device(model, sample);
	else
		host(model, sample);
}

/* What lost events held counts as hidden: nothing is known of it. */
static void forget_hidden(struct sl_device_state *device)
{
	device->hidden_peak_bytes = device->hidden_last_bytes = SL_UNKNOWN;
	device->hidden_line = NULL;
}

void sl_samples_end(struct sl_model *model, bool lost)
{
	for (size_t i = 0; i < SL_COUNT(model->devices); i++)
		if (model->devices[i]) {
			settle(model, model->devices[i]);
			if (lost)
				forget_hidden(model->devices[i]);
		}
}
