/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/trace.h"

static void read_processes(struct sl_sample *sample, const msgpack_object *map)
{
	const msgpack_object *list = sl_object_get(map, "processes");

	if (!list || list->type != MSGPACK_OBJECT_ARRAY)
		return;
	for (uint32_t i = 0; i < list->via.array.size && sample->process_count < SL_COUNT(sample->processes); i++) {
		const msgpack_object *pair = &list->via.array.ptr[i];
		uint64_t pid, bytes;

		if (pair->type != MSGPACK_OBJECT_ARRAY || pair->via.array.size < 2 ||
		    !sl_object_number(&pair->via.array.ptr[0], &pid) || !sl_object_number(&pair->via.array.ptr[1], &bytes))
			continue;
		sample->processes[sample->process_count].pid = (int64_t)pid;
		sample->processes[sample->process_count++].bytes = bytes;
	}
}

static void read_sample(struct sl_sample *sample, const msgpack_object *map)
{
	*sample = (struct sl_sample){
		.time_ns = sl_object_u64(map, "ns", 0),
		.begin_ns = sl_object_u64(map, "begin_ns", sl_object_u64(map, "ns", 0)),
		.device = sl_object_i64(map, "device", -1),
		.free_bytes = sl_object_u64(map, "free_bytes", SL_UNKNOWN),
		.total_bytes = sl_object_u64(map, "total_bytes", SL_UNKNOWN),
		.used_bytes = sl_object_u64(map, "used_bytes", SL_UNKNOWN),
		.process_bytes = sl_object_u64(map, "process_bytes", SL_UNKNOWN),
		.rss_bytes = sl_object_u64(map, "rss_bytes", SL_UNKNOWN),
		.vm_bytes = sl_object_u64(map, "vm_bytes", SL_UNKNOWN),
		.cgroup_bytes = sl_object_u64(map, "cgroup_bytes", SL_UNKNOWN),
		.cgroup_limit_bytes = sl_object_u64(map, "cgroup_limit_bytes", SL_UNKNOWN),
		.cgroup_peak_bytes = sl_object_u64(map, "cgroup_peak_bytes", SL_UNKNOWN),
		.oom_kills = sl_object_u64(map, "oom_kills", SL_UNKNOWN),
		.cgroup_id = sl_object_u64(map, "cgroup_id", SL_UNKNOWN),
		.source = sl_object_text(map, "source"),
	};
	if (sample->used_bytes == SL_UNKNOWN && sample->total_bytes != SL_UNKNOWN && sample->free_bytes <= sample->total_bytes)
		sample->used_bytes = sample->total_bytes - sample->free_bytes;
	read_processes(sample, map);
}

static void read_oom(struct sl_oom_context *oom, const msgpack_object *map)
{
	*oom = (struct sl_oom_context){
		.time_ns = sl_object_u64(map, "ns", 0),
		.seq = sl_object_u64(map, "seq", 0),
		.thread = (uint32_t)sl_object_u64(map, "thread", 0),
		.device = sl_object_i64(map, "device", -1),
		.free_bytes = sl_object_u64(map, "free_bytes", SL_UNKNOWN),
		.total_bytes = sl_object_u64(map, "total_bytes", SL_UNKNOWN),
		.vm_bytes = sl_object_u64(map, "vm_bytes", SL_UNKNOWN),
		.vm_limit_bytes = sl_object_u64(map, "vm_limit_bytes", SL_UNKNOWN),
		.rss_bytes = sl_object_u64(map, "rss_bytes", SL_UNKNOWN),
		.cgroup_bytes = sl_object_u64(map, "cgroup_bytes", SL_UNKNOWN),
		.cgroup_limit_bytes = sl_object_u64(map, "cgroup_limit_bytes", SL_UNKNOWN),
	};
}

bool sl_record_read(struct sl_item *item, const msgpack_object *map)
{
	const msgpack_object *def = sl_object_get(map, "def");

	if (def && sl_object_is_text(def, "sample")) {
		item->kind = SL_ITEM_SAMPLE;
		read_sample(&item->sample, map);
	} else if (def && sl_object_is_text(def, "oom")) {
		item->kind = SL_ITEM_OOM;
		read_oom(&item->oom, map);
	} else {
		return false;
	}
	item->event = NULL;
	item->hook = NULL;
	return true;
}
