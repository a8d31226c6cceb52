/* SPDX-License-Identifier: MIT */
/* The view of frameworks' pools other than PyTorch's: one row per device, and below it the names of its largest blocks. */

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "top/top.h"

#define NAMED 8 /* blocks named per device */

struct named {
	uint32_t label;
	uint16_t api;
	uint64_t bytes, blocks;
};

static int larger(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return SL_FALLING(x->bytes, y->bytes) ?: SL_RISING(x->label, y->label);
}

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return SL_RISING(x->label, y->label) ?: SL_RISING(x->api, y->api);
}

/* The names of the device's blocks, largest first; returns how many. */
static size_t names_of(const struct sl_model *model, int device, struct named *named)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < model->sites.count; i++) {
		const struct sl_site *site = &model->sites.item[i];
		const struct sl_hook *hook = sl_header_hook(model->header, site->api);

		if (hook && hook->family == SL_FAMILY_pool && site->device == device && site->live_blocks)
			named[count++] = (struct named){site->label, site->api, site->live_bytes, site->live_blocks};
	}
	qsort(named, count, sizeof(*named), by_name);
	for (size_t i = 0; i < count; i++)
		if (kept && !by_name(&named[kept - 1], &named[i])) {
			named[kept - 1].bytes += named[i].bytes;
			named[kept - 1].blocks += named[i].blocks;
		} else {
			named[kept++] = named[i];
		}
	qsort(named, kept, sizeof(*named), larger);
	return kept;
}

static void names(struct sl_top_lines *lines, int index, const struct sl_process *process, int device)
{
	const struct sl_model *model = process->model;
	struct named *named = sl_memory_must(calloc(model->sites.count + 1, sizeof(*named)));
	size_t count = names_of(model, device, named);
	char bytes[SL_FORMAT_BYTES];

	for (size_t i = 0; i < count && i < NAMED; i++) {
		const struct sl_hook *hook = sl_header_hook(model->header, named[i].api);
		const char *text = sl_defs_text(&process->trace->defs, named[i].label);

		sl_top_line(lines, TONE_PLAIN, index, "%16s%9s in %llu blocks  %s  %s", "", sl_format_size(bytes, named[i].bytes),
			    (unsigned long long)named[i].blocks, text ? text : "without a name", hook->plain);
	}
	if (count > NAMED)
		sl_top_line(lines, TONE_DIM, index, "%16sand %zu names more", "", count - NAMED);
	free(named);
}

void sl_top_pools(struct sl_top *top, struct sl_top_lines *lines)
{
	char t[3][SL_FORMAT_BYTES];

	for (unsigned i = 0; i < sl_follow_count(top->follow); i++) {
		if (!sl_top_shown(top, i))
			continue;
		const struct sl_process *process = &sl_top_process(top, i)->process;

		for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
			const struct sl_device_state *state = process->model->devices[d];
			const struct sl_torch *torch = state && state->used ? &state->torch : NULL;
			uint64_t used;

			if (!torch || !torch->pooled)
				continue;
			used = torch->pool_allocated_bytes < torch->pool_reserved_bytes ? torch->pool_allocated_bytes
											: torch->pool_reserved_bytes;
			sl_top_line(lines, TONE_BOLD, (int)i, "%7lld device %d: pools of frameworks %s, named %s, unnamed %s",
				    (long long)process->trace->header.pid, state->device,
				    sl_format_size(t[0], torch->pool_reserved_bytes),
				    sl_format_size(t[1], torch->pool_allocated_bytes),
				    sl_format_size(t[2], torch->pool_reserved_bytes - used));
			names(lines, (int)i, process, state->device);
		}
	}
}
