/* SPDX-License-Identifier: MIT */
/* Writes made-up traces.  Longer than other files: file and ring are written from the same state. */
#include "synth.h"

#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/base.h"
#include "common/block.h"
#include "common/ringfile.h"
#include "common/tracefile.h"

#define THREADS_MAX 4096

static const struct row {
	const char *name;
	enum sl_verb verb;
	enum sl_kind kind;
	enum sl_family family;
} rows[] = {
#define ROW(name, verb, kind, family)                                                                                              \
	{                                                                                                                          \
#name, SL_VERB_##verb, SL_KIND_##kind, SL_FAMILY_##family                                                          \
	}
	ROW(cudaMalloc, ALLOC, device, cuda_runtime),
	ROW(cudaFree, FREE, device, cuda_runtime),
	ROW(cudaMallocAsync, ALLOC, pool, cuda_runtime),
	ROW(cudaFreeAsync, FREE, pool, cuda_runtime),
	ROW(cudaMallocManaged, ALLOC, managed, cuda_runtime),
	ROW(cudaMallocHost, ALLOC, host_pinned, cuda_runtime),
	ROW(cudaFreeHost, FREE, host_pinned, cuda_runtime),
	ROW(cudaHostRegister, ALLOC, host_registered, cuda_runtime),
	ROW(cudaHostUnregister, FREE, host_registered, cuda_runtime),
	ROW(cudaMallocArray, ALLOC, array, cuda_runtime),
	ROW(cudaFreeArray, FREE, array, cuda_runtime),
	ROW(cudaDeviceReset, DEVICE_RESET, none, cuda_runtime),
	ROW(cudaIpcOpenMemHandle, ALLOC, imported, cuda_runtime),
	ROW(cudaIpcCloseMemHandle, FREE, imported, cuda_runtime),
	ROW(cuMemAlloc_v2, ALLOC, device, cuda_driver),
	ROW(cuMemFree_v2, FREE, unknown, cuda_driver),
	ROW(cuMemCreate, ALLOC, vmm, cuda_driver),
	ROW(cuMemRelease, FREE, vmm, cuda_driver),
	ROW(cuMemRetainAllocationHandle, RETAIN, vmm, cuda_driver),
	ROW(cuMemMap, MAP, vmm, cuda_driver),
	ROW(cuMemUnmap, UNMAP, vmm, cuda_driver),
	ROW(cuMemAddressReserve, RESERVE, none, cuda_driver),
	ROW(cuGraphicsResourceGetMappedPointer_v2, MAP, imported, cuda_driver),
	ROW(cuGraphicsUnmapResources, UNMAP, imported, cuda_driver),
	ROW(cuGraphicsUnmapResources_more, UNMAP_MORE, imported, cuda_driver),
	ROW(cuCtxCreate_v2, CONTEXT_CREATE, none, cuda_driver),
	ROW(cuCtxDestroy_v2, CONTEXT_DESTROY, none, cuda_driver),
	ROW(cuDevicePrimaryCtxRetain, PRIMARY_RETAIN, none, cuda_driver),
	ROW(cuDevicePrimaryCtxRelease_v2, PRIMARY_RELEASE, none, cuda_driver),
	ROW(cuModuleLoadData, MODULE_LOAD, none, cuda_driver),
	ROW(cuModuleUnload, MODULE_UNLOAD, none, cuda_driver),
	ROW(cuGraphAddMemAllocNode, GRAPH_ALLOC, graph, cuda_driver),
	ROW(cuGraphAddMemFreeNode, GRAPH_FREE, graph, cuda_driver),
	ROW(cuGraphInstantiate_v2, GRAPH_INSTANTIATE, none, cuda_driver),
	ROW(cuGraphLaunch, GRAPH_LAUNCH, none, cuda_driver),
	ROW(cuGraphDestroy, GRAPH_DESTROY, none, cuda_driver),
	ROW(cuGraphExecDestroy, EXEC_DESTROY, none, cuda_driver),
	ROW(block_alloc, BLOCK_ALLOC, block, torch),
	ROW(block_free, BLOCK_FREE, block, torch),
	ROW(block_oom, BLOCK_OOM, block, torch),
	ROW(block_wait, BLOCK_WAIT, block, torch),
	ROW(torch_fraction, BLOCK_FRACTION, block, torch),
	ROW(block_done, BLOCK_DONE, block, torch),
	{"at::cuda::CUDAGraph::capture_begin", SL_VERB_BLOCK_POOL, SL_KIND_block, SL_FAMILY_torch},
	{"at::cuda::CUDAGraph::capture_end", SL_VERB_BLOCK_POOL, SL_KIND_block, SL_FAMILY_torch},
	{"at::cuda::CUDAGraph::pool", SL_VERB_BLOCK_POOL, SL_KIND_block, SL_FAMILY_torch},
	{"at::cuda::CUDAGraph::reset", SL_VERB_BLOCK_POOL, SL_KIND_block, SL_FAMILY_torch},
	{"at::cuda::CUDAGraph::retain_pool", SL_VERB_BLOCK_POOL, SL_KIND_block, SL_FAMILY_torch},
	{"cudaStreamGetCaptureInfo", SL_VERB_BLOCK_POOL, SL_KIND_block, SL_FAMILY_torch},
	{"at::cuda::MemPool::MemPool", SL_VERB_BLOCK_POOL, SL_KIND_block, SL_FAMILY_torch},
	{"at::cuda::MemPool::id", SL_VERB_BLOCK_POOL, SL_KIND_block, SL_FAMILY_torch},
	{"at::cuda::MemPool::~MemPool", SL_VERB_BLOCK_POOL, SL_KIND_block, SL_FAMILY_torch},
	ROW(pool_alloc, BLOCK_ALLOC, block, pool),
	ROW(pool_drop, BLOCK_DROP, block, pool),
	ROW(ncclCommInitRank, CALL, none, nccl),
	ROW(range_push, RANGE_PUSH, none, label),
	ROW(range_pop, RANGE_POP, none, label),
	ROW(range_start, RANGE_START, none, label),
	ROW(range_end, RANGE_END, none, label),
	ROW(hipMalloc, ALLOC, device, hip),
	ROW(stormlog_hold, HOLD, none, label),
#undef ROW
};

struct slot_event {
	struct sl_event event;
	uint64_t seq;
	bool in_flight;
};

struct thread {
	struct slot_event *waiting;
	unsigned count, capacity;
	uint64_t next; /* slot number of the next event */
};

struct known {
	uint64_t hash; /* 0: free */
	unsigned id;
};

struct sl_synth {
	char *path, *ring_path;
	FILE *file;
	msgpack_sbuffer header, defs; /* definitions not yet written */
	uint64_t defs_first, defs_next;
	unsigned def_count, block_events, rows_rank;
	unsigned texts, frames, pythons, natives; /* the last id of each, as the agent counts them */
	struct known *known;			  /* frames that were defined: open addressing */
	unsigned known_mask;
	struct thread threads[THREADS_MAX];
	uint64_t now_ns, events;
	ZSTD_CCtx *zstd;
	uint8_t *out; /* a compressed frame */
	size_t room;
};

static void must(bool fine, const char *what)
{
	if (!fine) {
		perror(what);
		exit(99);
	}
}

static void text(msgpack_packer *pk, const char *value)
{
	if (value)
		msgpack_pack_str_with_body(pk, value, strlen(value));
	else
		msgpack_pack_nil(pk);
}

static void pair_text(msgpack_packer *pk, const char *key, const char *value)
{
	text(pk, key);
	text(pk, value);
}

static void pair_u64(msgpack_packer *pk, const char *key, uint64_t value)
{
	text(pk, key);
	msgpack_pack_uint64(pk, value);
}

static void pair_rank(msgpack_packer *pk, const char *key, int value)
{
	text(pk, key);
	if (value < 0)
		msgpack_pack_nil(pk);
	else
		msgpack_pack_int(pk, value);
}

static void write_frame(struct sl_synth *s, struct sl_frame_index index, const void *bytes, size_t size)
{
	if (ZSTD_compressBound(size) > s->room) {
		s->room = ZSTD_compressBound(size);
		s->out = realloc(s->out, s->room);
		must(s->out, "memory");
	}
	index.magic = SL_FRAME_MAGIC;
	index.size = sizeof(index) - 8;
	index.compressed = (uint32_t)ZSTD_compress2(s->zstd, s->out, s->room, bytes, size);
	index.check = sl_frame_index_check(&index);
	must(fwrite(&index, sizeof(index), 1, s->file) == 1 && fwrite(s->out, index.compressed, 1, s->file) == 1, s->path);
}

static void pack_tables(msgpack_packer *pk)
{
	text(pk, "verbs");
	msgpack_pack_array(pk, SL_VERB_COUNT);
	for (unsigned i = 0; i < SL_VERB_COUNT; i++) {
		msgpack_pack_array(pk, 2);
		text(pk, sl_event_verbs[i].name);
		text(pk, sl_event_verbs[i].stamped_before ? "before" : "after");
	}
	text(pk, "kinds");
	msgpack_pack_array(pk, SL_KIND_COUNT);
	for (unsigned i = 0; i < SL_KIND_COUNT; i++) {
		msgpack_pack_array(pk, 2);
		text(pk, sl_event_kinds[i].name);
		text(pk, sl_event_kinds[i].on_host ? "host" : "device");
	}
	text(pk, "families");
	msgpack_pack_array(pk, SL_FAMILY_COUNT);
	for (unsigned i = 0; i < SL_FAMILY_COUNT; i++) {
		msgpack_pack_array(pk, 2);
		text(pk, sl_event_families[i].name);
		msgpack_pack_int(pk, sl_event_families[i].oom);
	}
	text(pk, "hooks");
	msgpack_pack_array(pk, SL_COUNT(rows));
	for (unsigned i = 0; i < SL_COUNT(rows); i++) {
		msgpack_pack_array(pk, 4);
		text(pk, rows[i].name);
		msgpack_pack_int(pk, rows[i].verb);
		msgpack_pack_int(pk, rows[i].kind);
		msgpack_pack_int(pk, rows[i].family);
	}
}

static void pack_header(struct sl_synth *s, int rank, int pid, const char *run_id, const struct synth_place *place)
{
	msgpack_packer pk;

	msgpack_sbuffer_init(&s->header);
	msgpack_packer_init(&pk, &s->header, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 19);
	pair_text(&pk, "def", "header");
	pair_text(&pk, "format", SL_TRACE_FORMAT);
	pair_u64(&pk, "version", SL_TRACE_VERSION);
	pair_text(&pk, "agent", "synth");
	pair_u64(&pk, "started_ns", SYNTH_UNIX_NS + SYNTH_START_NS + place->ahead_ns);
	pair_u64(&pk, "monotonic_ns", SYNTH_START_NS);
	pair_text(&pk, "host", place->host);
	pair_u64(&pk, "pid", (uint64_t)pid);
	pair_text(&pk, "boot_id", "none");
	pair_text(&pk, "run_id", run_id);
	pair_rank(&pk, "rank", rank);
	pair_rank(&pk, "local_rank", rank);
	pair_rank(&pk, "world_size", rank < 0 ? -1 : place->world_size);
	text(&pk, "argv");
	msgpack_pack_array(&pk, 2);
	text(&pk, "python3");
	text(&pk, "train.py");
	pair_text(&pk, "exe", "/usr/bin/python3.11");
	pack_tables(&pk);
}

static msgpack_packer begin_def(struct sl_synth *s)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, &s->defs, msgpack_sbuffer_write);
	s->def_count++;
	return pk;
}

static void flush_defs(struct sl_synth *s)
{
	if (!s->def_count)
		return;
	s->defs_next = s->defs_first + s->defs.size;
	write_frame(
		s,
		(struct sl_frame_index){.kind = SL_FRAME_DEFS, .first = s->defs_first, .next = s->defs_next, .count = s->def_count},
		s->defs.data, s->defs.size);
	s->defs_first = s->defs_next;
	s->def_count = 0;
	msgpack_sbuffer_clear(&s->defs);
}

static void define_device(struct sl_synth *s, const char *uuid)
{
	msgpack_packer pk = begin_def(s);

	msgpack_pack_map(&pk, 5);
	pair_text(&pk, "def", "device");
	pair_u64(&pk, "ordinal", 0);
	pair_text(&pk, "name", "Simulated GPU");
	pair_text(&pk, "uuid", uuid);
	pair_u64(&pk, "total_bytes", 16ull << 30);
}

struct sl_synth *synth_new_on(const char *folder, int rank, int pid, const char *run_id, const char *uuid,
			      const struct synth_place *place)
{
	struct sl_synth *s = calloc(1, sizeof(*s));

	must(s, "memory");
	must(asprintf(&s->path, "%s/rank-%05d-%d%s", folder, rank < 0 ? 0 : rank, pid, SL_TRACE_SUFFIX) > 0, "memory");
	must(asprintf(&s->ring_path, "%s/rank-%05d-%d%s", folder, rank < 0 ? 0 : rank, pid, SL_RING_SUFFIX) > 0, "memory");
	s->file = fopen(s->path, "w");
	must(s->file, s->path);
	s->zstd = ZSTD_createCCtx();
	must(s->zstd, "memory");
	ZSTD_CCtx_setParameter(s->zstd, ZSTD_c_compressionLevel, 1);
	ZSTD_CCtx_setParameter(s->zstd, ZSTD_c_checksumFlag, 1);
	s->block_events = SL_BLOCK_EVENTS;
	s->now_ns = SYNTH_START_NS;
	for (unsigned i = 0; i < THREADS_MAX; i++)
		s->threads[i].next = 1;
	msgpack_sbuffer_init(&s->defs);
	pack_header(s, rank, pid, run_id, place);
	write_frame(s, (struct sl_frame_index){.kind = SL_FRAME_HEADER, .count = 1}, s->header.data, s->header.size);
	if (uuid)
		define_device(s, uuid);
	return s;
}

struct sl_synth *synth_new_run(const char *folder, int rank, int pid, const char *run_id, const char *uuid)
{
	static const struct synth_place place = {"node-1", 0, 1};

	return synth_new_on(folder, rank, pid, run_id, uuid, &place);
}

struct sl_synth *synth_new(const char *folder, int rank, int pid)
{
	return synth_new_run(folder, rank, pid, "synth-run", "GPU-00000000-0000-0000-0000-000000000001");
}

const char *synth_path(const struct sl_synth *synth)
{
	return synth->path;
}

/* Answers are kept by the address of the literal, since large traces ask for every event. */
unsigned synth_api(const char *name)
{
	static struct {
		const char *name;
		unsigned api;
	} known[64];
	unsigned at = (uintptr_t)name / 4 % SL_COUNT(known);

	if (known[at].name == name)
		return known[at].api;
	for (unsigned i = 0; i < SL_COUNT(rows); i++)
		if (!strcmp(rows[i].name, name)) {
			known[at].name = name;
			known[at].api = i + 1;
			return i + 1;
		}
	fprintf(stderr, "synth: no row %s\n", name);
	exit(99);
}

static void flush_thread(struct sl_synth *s, unsigned thread)
{
	struct thread *t = &s->threads[thread];
	static _Thread_local _Alignas(8) uint8_t bytes[SL_BLOCK_BYTES(SL_BLOCK_EVENTS)];
	static _Thread_local struct sl_event events[SL_BLOCK_EVENTS];
	uint64_t begin = UINT64_MAX, end = 0;
	unsigned count = 0;

	flush_defs(s);
	/* a call in flight holds back what comes after it, as the writer does */
	while (count < t->count && count < SL_BLOCK_EVENTS && !t->waiting[count].in_flight) {
		events[count] = t->waiting[count].event;
		begin = events[count].time_ns < begin ? events[count].time_ns : begin;
		end = events[count].time_ns > end ? events[count].time_ns : end;
		count++;
	}
	if (!count)
		return;
	uint64_t next = count < t->count ? t->waiting[count].seq : t->next;
	size_t size = sl_block_encode(bytes, thread, t->waiting[0].seq, next, events, count);

	write_frame(s,
		    (struct sl_frame_index){.kind = SL_FRAME_BLOCK,
					    .thread = thread,
					    .first = t->waiting[0].seq,
					    .next = next,
					    .count = count,
					    .begin_ns = begin,
					    .end_ns = end},
		    bytes, size);
	memmove(t->waiting, t->waiting + count, (t->count - count) * sizeof(*t->waiting));
	t->count -= count;
}

void synth_flush(struct sl_synth *s)
{
	flush_defs(s);
	for (unsigned i = 1; i < THREADS_MAX; i++)
		flush_thread(s, i);
}

void synth_block_events(struct sl_synth *s, unsigned events)
{
	s->block_events = events;
}

static void add(struct sl_synth *s, unsigned thread, const char *name, struct sl_event event, bool in_flight)
{
	struct thread *t = &s->threads[thread];
	unsigned api = synth_api(name);
	const struct row *row = &rows[api - 1];
	bool call = sl_slot_shape(row->verb) == SL_SHAPE_CALL;

	event.api = api;
	if (!event.kind)
		event.kind = row->kind;
	if (!call)
		event.duration_ns = 0;
	else if (!event.duration_ns)
		event.duration_ns = 100;
	if (!event.time_ns)
		event.time_ns = s->now_ns += 1000;
	else if (event.time_ns > s->now_ns)
		s->now_ns = event.time_ns;
	if (t->count == t->capacity) {
		t->capacity = t->capacity ? t->capacity * 2 : 64;
		t->waiting = realloc(t->waiting, t->capacity * sizeof(*t->waiting));
		must(t->waiting, "memory");
	}
	t->waiting[t->count++] = (struct slot_event){event, t->next, in_flight};
	t->next += call ? 2 : 1;
	s->events += !in_flight;
	if (t->count >= s->block_events)
		flush_thread(s, thread);
}

void synth_event(struct sl_synth *s, unsigned thread, const char *name, struct sl_event event)
{
	add(s, thread, name, event, false);
}

void synth_in_flight(struct sl_synth *s, unsigned thread, const char *name, struct sl_event event)
{
	add(s, thread, name, event, true);
}

unsigned synth_text(struct sl_synth *s, const char *value)
{
	msgpack_packer pk = begin_def(s);

	msgpack_pack_map(&pk, 3);
	pair_text(&pk, "def", "text");
	pair_u64(&pk, "id", ++s->texts);
	pair_text(&pk, "text", value);
	return s->texts;
}

unsigned synth_python(struct sl_synth *s, unsigned depth, const char *const *functions, const char *file, unsigned line)
{
	struct synth_frame frames[64];

	for (unsigned i = 0; i < depth && i < 64; i++)
		frames[i] = (struct synth_frame){functions[i], file, line + i};
	return synth_python_frames(s, depth < 64 ? depth : 64, frames);
}

static uint64_t hash_of(uint64_t hash, const char *value)
{
	for (value = value ? value : "\1"; *value; value++)
		hash = (hash ^ (unsigned char)*value) * 0x100000001b3;
	return (hash ^ 0xff) * 0x100000001b3;
}

static struct known *known_at(struct known *known, unsigned mask, uint64_t hash)
{
	unsigned at = (unsigned)(hash >> 32) & mask;

	while (known[at].hash && known[at].hash != hash)
		at = (at + 1) & mask;
	return &known[at];
}

static void make_room(struct sl_synth *s)
{
	unsigned mask = s->known ? s->known_mask * 2 + 1 : 63;
	struct known *bigger;

	if (s->known && s->frames * 2 < s->known_mask)
		return;
	bigger = calloc(mask + 1, sizeof(*bigger));
	must(bigger, "calloc");
	for (unsigned i = 0; s->known && i <= s->known_mask; i++)
		if (s->known[i].hash)
			*known_at(bigger, mask, s->known[i].hash) = s->known[i];
	free(s->known);
	s->known = bigger;
	s->known_mask = mask;
}

/* A frame is defined once, as the agent does it. */
static unsigned frame_id(struct sl_synth *s, const struct synth_frame *frame)
{
	uint64_t hash = hash_of(hash_of(0xcbf29ce484222325 + frame->line, frame->function), frame->file) | 1;
	struct known *known;
	msgpack_packer pk;

	make_room(s);
	known = known_at(s->known, s->known_mask, hash);
	if (known->hash)
		return known->id;
	*known = (struct known){hash, ++s->frames};
	pk = begin_def(s);
	msgpack_pack_map(&pk, 5);
	pair_text(&pk, "def", "frame");
	pair_u64(&pk, "id", known->id);
	pair_text(&pk, "function", frame->function);
	pair_text(&pk, "file", frame->file);
	pair_u64(&pk, "line", frame->line);
	return known->id;
}

unsigned synth_python_frames(struct sl_synth *s, unsigned depth, const struct synth_frame *frames)
{
	unsigned *ids = calloc(depth + 1, sizeof(*ids));
	msgpack_packer pk;

	must(ids, "calloc");
	for (unsigned i = 0; i < depth; i++)
		ids[i] = frame_id(s, &frames[i]);
	pk = begin_def(s);
	msgpack_pack_map(&pk, 3);
	pair_text(&pk, "def", "python_stack");
	pair_u64(&pk, "id", ++s->pythons);
	text(&pk, "frames");
	msgpack_pack_array(&pk, depth);
	for (unsigned i = 0; i < depth; i++)
		msgpack_pack_uint64(&pk, ids[i]);
	free(ids);
	return s->pythons;
}

unsigned synth_native(struct sl_synth *s, unsigned depth, const uint64_t *pcs)
{
	msgpack_packer pk = begin_def(s);

	msgpack_pack_map(&pk, 3);
	pair_text(&pk, "def", "native_stack");
	pair_u64(&pk, "id", ++s->natives);
	text(&pk, "pcs");
	msgpack_pack_bin(&pk, depth * sizeof(*pcs));
	msgpack_pack_bin_body(&pk, pcs, depth * sizeof(*pcs));
	return s->natives;
}

void synth_module(struct sl_synth *s, uint64_t base, uint64_t end, const char *path)
{
	msgpack_packer pk = begin_def(s);

	msgpack_pack_map(&pk, 4);
	pair_text(&pk, "def", "module");
	pair_u64(&pk, "base", base);
	pair_u64(&pk, "end", end);
	pair_text(&pk, "path", path);
}

void synth_sample(struct sl_synth *s, uint64_t ns, int device, uint64_t used, uint64_t total)
{
	msgpack_packer pk = begin_def(s);

	msgpack_pack_map(&pk, 6);
	pair_text(&pk, "def", "sample");
	pair_u64(&pk, "ns", ns);
	pair_u64(&pk, "device", (uint64_t)device);
	pair_u64(&pk, "used_bytes", used);
	pair_u64(&pk, "total_bytes", total);
	pair_text(&pk, "source", "synth");
}

void synth_shared_sample(struct sl_synth *s, uint64_t ns, int device, uint64_t used, uint64_t total, int64_t pid, uint64_t bytes)
{
	msgpack_packer pk = begin_def(s);

	msgpack_pack_map(&pk, 7);
	pair_text(&pk, "def", "sample");
	pair_u64(&pk, "ns", ns);
	pair_u64(&pk, "device", (uint64_t)device);
	pair_u64(&pk, "used_bytes", used);
	pair_u64(&pk, "total_bytes", total);
	pair_text(&pk, "source", "synth");
	text(&pk, "processes");
	msgpack_pack_array(&pk, 1);
	msgpack_pack_array(&pk, 2);
	msgpack_pack_int64(&pk, pid);
	msgpack_pack_uint64(&pk, bytes);
}

void synth_oom(struct sl_synth *s, uint64_t ns, unsigned thread, int device, uint64_t free, uint64_t total)
{
	msgpack_packer pk = begin_def(s);

	msgpack_pack_map(&pk, 6);
	pair_text(&pk, "def", "oom");
	pair_u64(&pk, "ns", ns);
	pair_u64(&pk, "thread", thread);
	pair_u64(&pk, "device", (uint64_t)device);
	pair_u64(&pk, "free_bytes", free);
	pair_u64(&pk, "total_bytes", total);
}

void synth_own_sample(struct sl_synth *s, uint64_t begin_ns, uint64_t ns, int device, uint64_t own, uint64_t total)
{
	msgpack_packer pk = begin_def(s);

	msgpack_pack_map(&pk, 8);
	pair_text(&pk, "def", "sample");
	pair_u64(&pk, "ns", ns);
	pair_u64(&pk, "begin_ns", begin_ns);
	pair_u64(&pk, "device", (uint64_t)device);
	pair_u64(&pk, "used_bytes", own);
	pair_u64(&pk, "process_bytes", own);
	pair_u64(&pk, "total_bytes", total);
	pair_text(&pk, "source", "synth");
}

void synth_note(struct sl_synth *s, const char *value)
{
	msgpack_packer pk = begin_def(s);

	msgpack_pack_map(&pk, 2);
	pair_text(&pk, "def", "note");
	pair_text(&pk, "text", value);
}

void synth_metadata(struct sl_synth *s, const char *key, const char *value)
{
	msgpack_packer pk = begin_def(s);

	msgpack_pack_map(&pk, 3);
	pair_text(&pk, "def", "metadata");
	pair_text(&pk, "key", key);
	pair_text(&pk, "value", value);
}

void synth_capability(struct sl_synth *s, const char *name, const char *value)
{
	msgpack_packer pk = begin_def(s);

	msgpack_pack_map(&pk, 3);
	pair_text(&pk, "def", "capability");
	pair_text(&pk, "name", name);
	pair_text(&pk, "value", value);
}

/* ---- the ring: one segment of definitions, one for each thread */

static void encode_slots(struct sl_slot *slots, const struct slot_event *waiting)
{
	const struct sl_event *e = &waiting->event;
	const struct row *row = &rows[e->api - 1];
	enum sl_slot_shape shape = sl_slot_shape(row->verb);
	bool before = sl_event_verbs[row->verb].stamped_before || waiting->in_flight;
	struct sl_slot *first = &slots[(waiting->seq - 1) % SL_SEGMENT_SLOTS];
	struct sl_slot *second = &slots[waiting->seq % SL_SEGMENT_SLOTS];
	uint64_t w[7] = {e->api | e->driver_api << 16 | e->kind << 32 | (e->flags & 0xff) << 40 |
				 (uint64_t)(uint16_t)e->device << 48,
			 e->time_ns,
			 0,
			 e->address,
			 e->bytes,
			 0,
			 0};

	if (shape == SL_SHAPE_CALL) {
		w[1] = before ? e->time_ns : e->time_ns - e->duration_ns;
		w[2] = e->duration_ns;
		w[5] = e->python | e->native << 32;
		w[6] = (uint32_t)e->result | e->label << 32;
		memcpy(&second->more, (uint64_t[7]){e->stream, e->context, e->object, e->extra, e->extra2, e->caller, 0},
		       sizeof(second->more));
		atomic_store(&second->state, SL_SLOT_WORD(waiting->seq + 1, SL_SLOT_EMPTY, false));
	} else {
		w[2] = e->extra;
		w[5] = e->extra2;
		w[6] = (uint32_t)e->label | e->python << 32;
	}
	memcpy(&first->call, w, sizeof(w));
	atomic_store(&first->state,
		     SL_SLOT_WORD(waiting->seq, waiting->in_flight ? SL_SLOT_IN_FLIGHT : SL_SLOT_DONE, shape == SL_SHAPE_CALL));
}

static void write_ring(struct sl_synth *s, bool completed)
{
	struct sl_ringfile *head = calloc(1, SL_RINGFILE_HEAD);
	FILE *file = fopen(s->ring_path, "w");
	unsigned count = 0;
	uint8_t *segments = NULL;

	must(head && file, s->ring_path);
	memcpy(head->magic, SL_RINGFILE_MAGIC, sizeof(head->magic));
	head->version = SL_RINGFILE_VERSION;
	head->segment_bytes = SL_SEGMENT_BYTES;
	head->segment_max = SL_SEGMENT_MAX;
	head->header_bytes = (uint32_t)s->header.size;
	atomic_store(&head->state, completed ? SL_PROCESS_COMPLETED : SL_PROCESS_RUNNING);
	memcpy((uint8_t *)head + SL_RINGFILE_HEADER_AT, s->header.data, s->header.size);
	for (unsigned i = 1; i < THREADS_MAX; i++) {
		struct thread *t = &s->threads[i];

		if (t->next == 1)
			continue;
		segments = realloc(segments, (size_t)(count + 1) * SL_SEGMENT_BYTES);
		must(segments, "memory");
		memset(segments + (size_t)count * SL_SEGMENT_BYTES, 0, SL_SEGMENT_BYTES);
		atomic_store(&head->segment[count].use, SL_SEGMENT_EVENTS);
		head->segment[count].thread = i;
		head->segment[count].first = 1;
		atomic_store(&head->segment[count].tail, t->count ? t->waiting[0].seq : t->next);
		for (unsigned k = 0; k < t->count; k++)
			encode_slots((struct sl_slot *)(segments + (size_t)count * SL_SEGMENT_BYTES), &t->waiting[k]);
		count++;
	}
	if (s->def_count) { /* one record that holds them all: a reader takes map by map */
		uint8_t *log;
		size_t at = 0, offset = 0;
		msgpack_unpacked unpacked;

		segments = realloc(segments, (size_t)(count + 1) * SL_SEGMENT_BYTES);
		must(segments, "memory");
		log = segments + (size_t)count * SL_SEGMENT_BYTES;
		memset(log, 0, SL_SEGMENT_BYTES);
		atomic_store(&head->segment[count].use, SL_SEGMENT_DEFS);
		head->segment[count].first = s->defs_first;
		msgpack_unpacked_init(&unpacked);
		for (size_t before = 0; msgpack_unpack_next(&unpacked, s->defs.data, s->defs.size, &offset) > 0; before = offset) {
			uint64_t word = SL_DEF_WORD(offset - before, SL_DEF_DONE);

			memcpy(log + at, &word, 8);
			memcpy(log + at + 8, s->defs.data + before, offset - before);
			at += SL_DEF_SIZE(offset - before);
		}
		msgpack_unpacked_destroy(&unpacked);
		count++;
	}
	atomic_store(&head->segments, count);
	must(fwrite(head, SL_RINGFILE_HEAD, 1, file) == 1 && (!count || fwrite(segments, SL_SEGMENT_BYTES, count, file) == count),
	     s->ring_path);
	fclose(file);
	free(segments);
	free(head);
}

static void write_footer(struct sl_synth *s)
{
	msgpack_sbuffer out;
	msgpack_packer pk;

	msgpack_sbuffer_init(&out);
	msgpack_packer_init(&pk, &out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 4);
	pair_text(&pk, "def", "footer");
	pair_u64(&pk, "ns", s->now_ns);
	pair_text(&pk, "how", "exit");
	pair_u64(&pk, "events", s->events);
	write_frame(s, (struct sl_frame_index){.kind = SL_FRAME_FOOTER, .count = 1}, out.data, out.size);
	msgpack_sbuffer_destroy(&out);
}

void synth_close(struct sl_synth *s, enum synth_end end)
{
	if (end == SYNTH_COMPLETED)
		synth_flush(s);
	if (end == SYNTH_COMPLETED || end == SYNTH_LATE)
		write_footer(s);
	if (end == SYNTH_KILLED || end == SYNTH_LATE)
		write_ring(s, end == SYNTH_LATE);
	must(!fclose(s->file), s->path);
	for (unsigned i = 0; i < THREADS_MAX; i++)
		free(s->threads[i].waiting);
	msgpack_sbuffer_destroy(&s->defs);
	msgpack_sbuffer_destroy(&s->header);
	ZSTD_freeCCtx(s->zstd);
	free(s->out);
	free(s->known);
	free(s->path);
	free(s->ring_path);
	free(s);
}
