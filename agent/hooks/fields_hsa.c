/* SPDX-License-Identifier: MIT */
/*
 * Where memory of HSA lies.  HSA names pools and agents by handles without numbers; here a device is the nth agent that is a
 * GPU, which is how HIP counts.  HIP itself is never asked: while starting it allocates from HSA, and would wait for itself.
 */

#include "agent/hooks/fields.h"
#include "agent/symbols/symbols.h"

/* Numbers of hsa.h */
enum { AGENT_INFO_DEVICE = 17, DEVICE_TYPE_GPU = 1, INFO_BREAK = 1 };

typedef int (*pool_visitor)(hsa_amd_memory_pool_t, void *);
typedef int (*agent_visitor)(hsa_agent_t, void *);

struct walk {
	int (*get_info)(hsa_agent_t, int, void *);
	int (*each_pool)(hsa_agent_t, pool_visitor, void *);
	uint64_t pool, agent; /* the one that is looked for; the other is 0 */
	int gpus;	      /* GPUs met so far */
	bool found, on_gpu;
};

static int visit_pool(hsa_amd_memory_pool_t pool, void *data)
{
	struct walk *walk = data;

	walk->found = pool.handle == walk->pool;
	return walk->found ? INFO_BREAK : 0;
}

static int visit_agent(hsa_agent_t agent, void *data)
{
	struct walk *walk = data;
	int type = -1;

	walk->get_info(agent, AGENT_INFO_DEVICE, &type);
	walk->on_gpu = type == DEVICE_TYPE_GPU;
	if (walk->each_pool)
		walk->each_pool(agent, visit_pool, walk);
	else
		walk->found = agent.handle == walk->agent;
	if (walk->found)
		return INFO_BREAK;
	walk->gpus += walk->on_gpu;
	return 0;
}

/* HIP counts only the devices that it is told to show, in the order in which they are named. */
static int shown_as(int gpu)
{
	const char *list = sl_agent->process.hip_devices, *end;

	if (!*list || !sl_resolve_in("libamdhip64.so", "hipMalloc"))
		return gpu;
	for (int n = 0; *list; n++) {
		int number = 0;

		for (end = list; *end >= '0' && *end <= '9' && number < 1000; end++)
			number = number * 10 + *end - '0';
		if (number == gpu && end != list)
			return n;
		if (end == list || *end != ',')
			break; /* a uuid, which is not resolved */
		list = end + 1;
	}
	return -1;
}

/* A location in 16 bits: host, or device + 1, or 0 unknown. */
#define ON_HOST 0x8000
#define NOWHERE (-1)

static int walk_agents(void *real, struct walk *walk)
{
	int (*each_agent)(agent_visitor, void *) = sl_resolve_beside(real, "hsa_iterate_agents");
	int saved = errno;

	walk->get_info = sl_resolve_beside(real, "hsa_agent_get_info");
	if (!each_agent || !walk->get_info)
		return NOWHERE;
	sl_agent_begin(&sl_thread);
	each_agent(visit_agent, walk);
	sl_agent_end(&sl_thread);
	errno = saved;
	if (!walk->found)
		return NOWHERE;
	return walk->on_gpu ? shown_as(walk->gpus) + 1 : ON_HOST;
}

/* Pools live as long as HSA, so results are kept until it shuts down: handle and location in one word. */
static _Atomic uint64_t pool_places[64];

void sl_fields_hsa_forget(void)
{
	for (unsigned i = 0; i < SL_COUNT(pool_places); i++)
		atomic_store_explicit(&pool_places[i], 0, memory_order_relaxed);
}

static int place_of(void *real, uint64_t pool, const char *iterate, bool done)
{
	struct walk walk = {.pool = pool};
	uint64_t word = 0;
	int place;

	for (unsigned i = 0; i < SL_COUNT(pool_places) && (word = atomic_load_explicit(&pool_places[i], memory_order_relaxed)); i++)
		if (word >> 16 == pool)
			return (int)(word & 0xffff);
	walk.each_pool = done ? sl_resolve_beside(real, iterate) : NULL;
	place = walk.each_pool ? walk_agents(real, &walk) : NOWHERE;
	if (place == NOWHERE)
		return NOWHERE;
	for (unsigned i = 0; i < SL_COUNT(pool_places); i++) {
		word = 0;
		if (atomic_compare_exchange_strong(&pool_places[i], &word, pool << 16 | (uint64_t)place) || word >> 16 == pool)
			break;
	}
	return place;
}

static int device_at(int place)
{
	return place == NOWHERE ? 0 : place == ON_HOST ? SL_NO_DEVICE : place;
}

enum sl_kind sl_fields_hsa_kind(void *real, uint64_t pool, const char *iterate, bool done)
{
	int place = place_of(real, pool, iterate, done);

	return place == NOWHERE ? SL_KIND_unknown : place == ON_HOST ? SL_KIND_host_pinned : SL_KIND_device;
}

int sl_fields_hsa_device(void *real, uint64_t pool, const char *iterate, bool done)
{
	return device_at(place_of(real, pool, iterate, done));
}

int sl_fields_hsa_device_of_handle(void *real, hsa_amd_vmem_alloc_handle_t handle)
{
	int (*ask)(hsa_amd_vmem_alloc_handle_t, hsa_amd_memory_pool_t *, int *) =
		sl_resolve_beside(real, "hsa_amd_vmem_get_alloc_properties_from_handle");
	hsa_amd_memory_pool_t pool = {0};
	int type, saved = errno, failed;

	if (!ask)
		return 0;
	sl_agent_begin(&sl_thread);
	failed = ask(handle, &pool, &type);
	sl_agent_end(&sl_thread);
	errno = saved;
	return failed ? 0 : sl_fields_hsa_device(real, pool.handle, SL_HSA_POOLS, true);
}

int sl_fields_hsa_device_of_pointer(void *real, const void *pointer)
{
	hsa_amd_pointer_info_t info = {.size = sizeof(info)};
	int (*ask)(const void *, hsa_amd_pointer_info_t *, void *, uint32_t *, hsa_agent_t **) =
		sl_resolve_beside(real, "hsa_amd_pointer_info");
	struct walk walk = {0};
	int saved = errno, failed;

	if (!ask || !pointer)
		return 0;
	sl_agent_begin(&sl_thread);
	failed = ask(pointer, &info, NULL, NULL, NULL);
	sl_agent_end(&sl_thread);
	errno = saved;
	walk.agent = info.agentOwner.handle;
	return failed || !walk.agent ? 0 : device_at(walk_agents(real, &walk));
}
