/* SPDX-License-Identifier: MIT */
/* Samples of whole devices and of the process: what the model of one process's calls cannot see. */
#include "analyzer/model/model.h"

#include <string.h>

static void keep_max(uint64_t *peak, uint64_t value)
{
	if (value != SL_UNKNOWN && (*peak == SL_UNKNOWN || value > *peak))
		*peak = value;
}

static void host(struct sl_model *model, const struct sl_sample *sample)
{
	struct sl_host *host = &model->host;

	keep_max(&host->rss_peak, sample->rss_bytes);
	keep_max(&host->cgroup_peak, sample->cgroup_peak_bytes != SL_UNKNOWN ? sample->cgroup_peak_bytes :
									      sample->cgroup_bytes);
	if (sample->cgroup_limit_bytes != SL_UNKNOWN)
		host->cgroup_limit = sample->cgroup_limit_bytes;
	if (sample->oom_kills != SL_UNKNOWN)
		host->oom_kills = sample->oom_kills;
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

static void device(struct sl_model *model, const struct sl_sample *sample)
{
	struct sl_device_state *device = sl_model_device(model, sample->device);
	size_t size = sample->source.size < sizeof(device->source) - 1 ? sample->source.size : sizeof(device->source) - 1;

	device->used = true;
	if (sample->source.text) {
		memcpy(device->source, sample->source.text, size);
		device->source[size] = 0;
	}
	if (sample->total_bytes != SL_UNKNOWN)
		device->total_bytes = sample->total_bytes;
	if (sample->used_bytes == SL_UNKNOWN)
		return;
	keep_max(&device->used_peak_bytes, sample->used_bytes);
	device->used_last_bytes = sample->used_bytes;
	if (!device->used_line)
		device->used_line = sl_timeline_add(&model->timeline, SL_LINE_USED, device->device, 0);
	sl_timeline_set(&model->timeline, device->used_line, model->now_ns, sample->used_bytes, SL_NO_SITE);
	/* A sample taken while a call was running may lie below what the calls add up to. */
	device->hidden_last_bytes = sample->used_bytes > device->known ? sample->used_bytes - device->known : 0;
	if (device->hidden_peak_bytes == SL_UNKNOWN || device->hidden_last_bytes > device->hidden_peak_bytes) {
		device->hidden_peak_bytes = device->hidden_last_bytes;
		device->hidden_peak_ns = model->now_ns;
	}
}

void sl_samples_apply(struct sl_model *model, const struct sl_sample *sample)
{
	if (sample->device >= 0)
		device(model, sample);
	else
		host(model, sample);
}
