/* SPDX-License-Identifier: MIT */
#include "analyzer/model/state/model.h"

#include "analyzer/base/memory.h"

void sl_model_range_allocs_add(struct sl_making *making, uint32_t site, uint64_t bytes)
{
	uint32_t at = sl_idmap_claim(&making->at, site, making->made.count);

	if (at == making->made.count)
		*SL_PUSH(&making->made) = (struct sl_made){.site = site};
	making->made.item[at].bytes += bytes;
	making->made.item[at].blocks++;
}

void sl_model_range_allocs_drop(struct sl_making *making)
{
	SL_DROP(&making->made);
	sl_idmap_free(&making->at);
}

bool sl_model_is_cache(const char *library)
{
	return strstr(library, "c10_") || !strncmp(library, SL_POOL_OF, strlen(SL_POOL_OF));
}

bool sl_model_in_use(const struct sl_model *model, const struct sl_site *site)
{
	const struct sl_device_state *device = model->devices[site->device + 1];

	if (site->kind == SL_KIND_block)
		return true;
	return sl_model_is_on_device(site) && !(device && device->torch.used && sl_model_is_cache(sl_model_library(model, site)));
}

const struct sl_oom *sl_model_ended_by(const struct sl_model *model)
{
	const struct sl_oom *last = model->ooms.count ? &model->ooms.item[model->ooms.count - 1] : NULL;

	return last && !sl_oom_got_over(last) ? last : NULL;
}

const struct sl_oom *sl_model_next_failure(const struct sl_model *model, const struct sl_oom *oom)
{
	for (size_t i = oom ? (size_t)(oom - model->ooms.item) + 1 : 0; i < model->ooms.count; i++)
		if (!sl_oom_got_over(&model->ooms.item[i]))
			return &model->ooms.item[i];
	return NULL;
}

const struct sl_site *sl_model_site_of(const struct sl_model *model, const struct sl_track *track, const struct sl_site *site)
{
	for (size_t i = site ? (size_t)(site - model->sites.item) + 1 : 0; i < model->sites.count; i++)
		if (&model->tracks.item[model->sites.item[i].track] == track)
			return &model->sites.item[i];
	return NULL;
}

static bool is_saved(const struct sl_model *model, const struct sl_site *site)
{
	const struct sl_device_state *device = model->devices[site->device + 1];

	return !model->site_course || (device && model->site_course[site - model->sites.item].epoch == device->epoch);
}

uint64_t sl_model_site_at_peak(const struct sl_model *model, const struct sl_site *site)
{
	return is_saved(model, site) ? site->at_peak_bytes : site->live_bytes;
}

uint64_t *sl_model_tracks_at_peak(const struct sl_model *model, int device)
{
	uint64_t *bytes = sl_memory_must(calloc(model->tracks.count + 1, sizeof(*bytes)));

	for (size_t i = 0; i < model->sites.count; i++)
		if (model->sites.item[i].device == device && sl_model_in_use(model, &model->sites.item[i]))
			bytes[model->sites.item[i].track] += sl_model_site_at_peak(model, &model->sites.item[i]);
	return bytes;
}

uint64_t sl_model_blocks_at_peak(const struct sl_model *model, const struct sl_site *site)
{
	return is_saved(model, site) ? site->at_peak_blocks : site->live_blocks;
}

const char *sl_model_rest_name(const struct sl_torch *torch)
{
	if (!torch || !torch->pooled)
		return "kept by PyTorch, unused";
	return torch->reported ? "kept by PyTorch, or unnamed in pools" : "in pools, unnamed";
}

/* JAX's name for the library of its pool. */
static bool is_jax(const char *library)
{
	return strstr(library, "xla") || strstr(library, "jax");
}

bool sl_model_is_cublas(const char *library)
{
	return !strncmp(library, "libcublas.so", strlen("libcublas.so"));
}

static uint64_t beyond(uint64_t segments, uint64_t blocks, uint64_t limit)
{
	uint64_t unused_bytes = segments > blocks ? segments - blocks : 0;

	return unused_bytes < limit ? unused_bytes : limit;
}

unsigned sl_model_rests(const struct sl_model *model, const struct sl_torch *torch, const char *name, uint64_t bytes,
			struct sl_rest rests[SL_RESTS_MAX])
{
	struct sl_rest graphs = {.name = "CUDA graphs", .stack = torch->graph_stack}, pool = {.name = "in pools, unnamed"}, unused;
	const struct sl_site *site = torch->pool_site ? &model->sites.item[torch->pool_site - 1] : NULL;
	unsigned count = 0;

	if (!name)
		return 0;
	graphs.bytes = beyond(torch->graph_reserved_bytes, torch->graph_allocated_bytes, bytes);
	if (torch->graph_pools)
		snprintf(graphs.name, sizeof(graphs.name), "CUDA graphs in %llu pool%s", (unsigned long long)torch->graph_pools,
			 torch->graph_pools > 1 ? "s" : "");
	pool.bytes = beyond(torch->pool_reserved_bytes, torch->pool_allocated_bytes, bytes - graphs.bytes);
	if (site) {
		pool.stack = site->stack;
		pool.jax = is_jax(sl_model_library(model, site));
	}
	if (pool.jax)
		snprintf(pool.name, sizeof(pool.name), "rest of JAX's pool");
	unused = (struct sl_rest){.bytes = bytes - graphs.bytes - pool.bytes};
	snprintf(unused.name, sizeof(unused.name), "%s", pool.bytes && torch->reported ? "kept by PyTorch, unused" : name);
	if (unused.bytes)
		rests[count++] = unused;
	if (graphs.bytes)
		rests[count++] = graphs;
	if (pool.bytes)
		rests[count++] = pool;
	return count;
}

const char *sl_model_unused(const struct sl_torch *torch, uint64_t *bytes)
{
	*bytes = torch->used && torch->reserved_bytes > torch->allocated_bytes ? torch->reserved_bytes - torch->allocated_bytes : 0;
	return *bytes ? sl_model_rest_name(torch) : NULL;
}

const char *sl_model_rest_at_peak(const struct sl_model *model, const struct sl_device_state *device, uint64_t *bytes)
{
	uint64_t site_bytes = 0;

	if (!device->peak_folded || !device->torch.used)
		return sl_model_unused(&device->torch_at_peak, bytes);
	for (size_t i = 0; i < model->sites.count; i++)
		if (model->sites.item[i].device == device->device && sl_model_in_use(model, &model->sites.item[i]))
			site_bytes += sl_model_site_at_peak(model, &model->sites.item[i]);
	*bytes = device->known_peak > site_bytes ? device->known_peak - site_bytes : 0;
	return *bytes ? "tensors folded by --keep, and unused" : NULL;
}
