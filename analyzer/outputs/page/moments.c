/* SPDX-License-Identifier: MIT */
/* Who held memory at certain moments: each device's peak, the end, errors and leaks; and the total of all allocations. */

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"

#include "analyzer/outputs/page/page.h"

struct sample {
	uint32_t node;
	double bytes, blocks;
};

struct samples {
	SL_VECTOR(struct sample) s;
};

static void add(struct samples *samples, uint32_t node, double bytes, double blocks)
{
	*SL_PUSH(&samples->s) = (struct sample){node, bytes, blocks};
}

static int by_node(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return SL_RISING(x->node, y->node);
}

static int by_bytes(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return SL_FALLING(x->bytes, y->bytes) ?: by_node(a, b);
}

/* One sample per stack, largest first; those beyond the budget are merged. */
static void settle(struct sl_page *page, struct samples *samples)
{
	size_t node_count = 0, count = samples->s.count;
	struct sample *s = samples->s.item, rest = {0};
	char text[64];

	if (!count)
		return;
	qsort(s, count, sizeof(*s), by_node);
	for (size_t i = 1; i < count; i++)
		if (s[i].node == s[node_count].node) {
			s[node_count].bytes += s[i].bytes;
			s[node_count].blocks += s[i].blocks;
		} else {
			s[++node_count] = s[i];
		}
	samples->s.count = ++node_count;
	qsort(s, node_count, sizeof(*s), by_bytes);
	if (node_count <= page->budget.samples)
		return;
	for (size_t i = page->budget.samples; i < node_count; i++) {
		rest.bytes += s[i].bytes;
		rest.blocks += s[i].blocks;
	}
	snprintf(text, sizeof(text), "%zu smaller places", node_count - page->budget.samples);
	samples->s.count = page->budget.samples;
	add(samples, sl_page_note(page, text), rest.bytes, rest.blocks);
}

static void put_moment(struct sl_page *page, unsigned process, int device, const char *kind, uint64_t at_ns,
		       struct samples *samples)
{
	size_t n;
	uint32_t *stack;
	double *bytes, *blocks;

	settle(page, samples);
	n = samples->s.count;
	stack = sl_memory_must(calloc(n + 1, sizeof(*stack)));
	bytes = sl_memory_must(calloc(n + 1, sizeof(*bytes)));
	blocks = sl_memory_must(calloc(n + 1, sizeof(*blocks)));
	for (size_t i = 0; i < n; i++) {
		stack[i] = samples->s.item[i].node;
		bytes[i] = samples->s.item[i].bytes;
		blocks[i] = samples->s.item[i].blocks;
	}
	sl_page_row(page, process);
	sl_json_known(page->j, "device", device);
	sl_json_string(page->j, "kind", kind);
	sl_page_put_time(page, "at", process, at_ns);
	sl_json_column(page->j, "stack", SL_PACKED_U32, stack, n);
	sl_json_column(page->j, "bytes", SL_PACKED_F64, bytes, n);
	sl_json_column(page->j, "blocks", SL_PACKED_F64, blocks, n);
	sl_json_end(page->j);
	free(stack);
	free(bytes);
	free(blocks);
	free(samples->s.item);
	*samples = (struct samples){0};
}

bool sl_page_is_shown(const struct sl_model *model, const struct sl_site *site, int device)
{
	bool torch = model->devices[device + 1] && model->devices[device + 1]->torch.used;

	if (site->device != device)
		return false;
	if (site->kind == SL_KIND_block)
		return torch;
	return sl_model_in_use(model, site);
}

static void add_rest(struct sl_page *page, struct samples *samples, const char *name, uint64_t bytes)
{
	add(samples, sl_page_note(page, name), (double)bytes, 0);
}

static void add_rests(struct sl_page *page, struct samples *samples, const struct sl_model *model, const struct sl_torch *torch,
		      const char *name, uint64_t bytes)
{
	struct sl_rest rests[SL_RESTS_MAX];
	unsigned count = sl_model_rests(model, torch, name, bytes, rests);

	for (unsigned i = 0; i < count; i++)
		add_rest(page, samples, rests[i].name, rests[i].bytes);
}

enum value { AT_PEAK, AT_END, EVER };

static void of_device(struct sl_page *page, unsigned process, int device, enum value value, struct samples *samples)
{
	const struct sl_model *model = page->report->processes[process].model;
	const struct sl_device_state *state = model->devices[device + 1];
	uint64_t rest;

	for (uint32_t i = 0; i < model->sites.count; i++) {
		const struct sl_site *site = &model->sites.item[i];
		uint64_t bytes = value == AT_PEAK  ? sl_model_site_at_peak(model, site)
				 : value == AT_END ? site->live_bytes
						   : site->total_bytes;
		uint64_t blocks = value == AT_PEAK  ? sl_model_blocks_at_peak(model, site)
				  : value == AT_END ? site->live_blocks
						    : site->total_blocks;

		if (bytes && sl_page_is_shown(model, site, device))
			add(samples, sl_page_site(page, process, i), (double)bytes, (double)blocks);
	}
	if (value != EVER) {
		const char *name =
			value == AT_PEAK ? sl_model_rest_at_peak(model, state, &rest) : sl_model_unused(&state->torch, &rest);

		add_rests(page, samples, model, value == AT_PEAK ? &state->torch_at_peak : &state->torch, name, rest);
	}
}

static void device_moments(struct sl_page *page, unsigned process)
{
	const struct sl_model *model = page->report->processes[process].model;
	struct samples samples = {0};

	for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
		const struct sl_device_state *device = model->devices[d];

		if (!device || !device->known_peak)
			continue;
		of_device(page, process, device->device, AT_PEAK, &samples);
		put_moment(page, process, device->device, "peak", device->known_peak_ns, &samples);
		of_device(page, process, device->device, AT_END, &samples);
		put_moment(page, process, device->device, "end", model->now_ns, &samples);
		of_device(page, process, device->device, EVER, &samples);
		put_moment(page, process, device->device, "churn", 0, &samples);
	}
}

/* The evenly spread moments of the replay, for each device. */
static void timed_moments(struct sl_page *page, unsigned process)
{
	const struct sl_model *model = page->report->processes[process].model;
	unsigned every = ((unsigned)model->moments.count + page->budget.moments - 1) / page->budget.moments;
	struct samples samples = {0};

	for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
		if (!model->devices[d] || !model->devices[d]->known_peak)
			continue;
		for (unsigned m = 0; m < model->moments.count; m += every ? every : 1) {
			const struct sl_moment *moment = &model->moments.moment[m];

			for (uint32_t i = 0; i < moment->count; i++)
				if (sl_page_is_shown(model, &model->sites.item[moment->sites[i].site], (int)d - 1))
					add(&samples, sl_page_site(page, process, moment->sites[i].site),
					    (double)moment->sites[i].bytes, (double)moment->sites[i].blocks);
			if (d && d <= moment->unused_count && moment->unused_bytes[d - 1])
				add_rests(page, &samples, model,
					  &(struct sl_torch){.graph_reserved_bytes =
								     d <= moment->graph_count ? moment->graph_bytes[d - 1] : 0},
					  sl_model_rest_name(&model->devices[d]->torch), moment->unused_bytes[d - 1]);
			put_moment(page, process, (int)d - 1, "time", moment->time_ns, &samples);
		}
	}
}

static void other_moments(struct sl_page *page, unsigned process)
{
	const struct sl_process *p = &page->report->processes[process];
	const struct sl_oom *oom = sl_process_first_oom(p);
	struct samples samples = {0};
	const char *unused;
	uint64_t left;
	bool leaks = false;

	for (size_t i = 0; i < p->leaks.count; i++)
		leaks |= sl_leak_counts(&p->leaks.item[i]);
	if (leaks) {
		for (size_t i = 0; i < p->leaks.count; i++) {
			const struct sl_leak *leak = &p->leaks.item[i];

			if (!sl_leak_counts(leak))
				continue;
			add(&samples, sl_page_stack(page, process, leak->stack), (double)leak->bytes, (double)leak->blocks);
		}
		put_moment(page, process, -1, "leaks", 0, &samples);
	}
	if (oom && oom->owner_count) {
		for (unsigned i = 0; i < oom->owner_count; i++)
			if (oom->device < 0 || sl_page_is_shown(p->model, &p->model->sites.item[oom->owners[i].site], oom->device))
				add(&samples, sl_page_site(page, process, oom->owners[i].site), (double)oom->owners[i].bytes,
				    (double)oom->owners[i].blocks);
		unused = sl_model_unused(&oom->torch, &left);
		add_rests(page, &samples, p->model, &oom->torch, unused, left);
		put_moment(page, process, oom->device, "oom", oom->time_ns, &samples);
	}
}

void sl_page_moments(struct sl_page *page)
{
	sl_json_array(page->j, "moments");
	for (unsigned k = 0; k < page->budget.detailed; k++) {
		device_moments(page, page->order[k]);
		timed_moments(page, page->order[k]);
		other_moments(page, page->order[k]);
	}
	sl_json_end(page->j);
}
