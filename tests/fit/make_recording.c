/* SPDX-License-Identifier: MIT */
/*
 * make_recording FOLDER RELEASE SEED: writes a trace of the program of that seed (ops.h) on a device without limit, with default
 * settings.  Prints the index of the op behind each request; no trace and no output where the program empties the cache.
 * SEED batch=N: five steps of a program whose activations grow with N, which is in the metadata.
 * SEED fragmented: see fragment().  SEED other: an allocator that takes 3 MiB from the driver for a block of 1, unlike PyTorch's.
 * SEED fraction: PyTorch may have half of a device of 104 MiB; it has 40 MiB, asks for 20, and the driver is not asked.
 * SEED beside: on a device of 104 MiB it has 60, and cuBLAS is refused 64.
 * From seed 3 << 20 on it captures CUDA graphs, which have their own pool or share one.  From 4 << 20 on it captures two at once
 * and uses MemPools, but not before 2.8, where a MemPool got the requests of all threads.
 *
 * In the environment:
 *	FRACTION		the program set that memory fraction first
 *	SLOTS			the driver's addresses are slots of powers of two, instead of rising
 *	HIP			the program calls HIP
 *	SWAPPED			handles of streams are in the opposite order
 *	ASKS_FREE		it asked for free memory, as the value says
 *	GRAPH			it made a CUDA graph
 *	BLIND			the agent could not see a fraction
 *	LONG=N			fragmented: after N blocks that come and go
 *	GOES_ON			beside: it asks for 4 MiB then; fragmented: it catches the error and asks for 1 MiB; GOES_ON=again: and for 38 once more
 *	NO_SAMPLE		no sample of the device
 *	LATE_SAMPLE=10		the first sample comes after ten ops, with 300 MiB more in use than is known
 *	LATE_SAMPLE=end		only after the last op
 *	LATE_SAMPLE=during	a sample of only this process spans two events, and another comes after the last op
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/fit/block.h"
#include "analyzer/fit/engine.h"
#include "tests/analyzer/synth.h"
#include "tests/fit/ops.h"

static struct sl_fit_places segments = {.next = 1ull << 40}; /* the same as the engine's */
static uint64_t said;					     /* events of blocks and segments */

static struct {			       /* of each private pool */
	uint64_t driver, graphs[3000]; /* the driver's graph; PyTorch's, newest last */
	unsigned count, named;
} held[9];
static unsigned lines[4]; /* Python stacks: use_mem_pool begins, ends, releases; other code that asks for a pool's name */

/* Each MemPool is used by a thread of its own; thread 1 does all else. */
static unsigned thread_of(unsigned pool, bool captures)
{
	return pool && !captures ? 1 + pool : 1;
}

static void record_on(struct sl_synth *s, struct sl_fit_engine *e, unsigned thread, const char *name,
		      const struct sl_fit_block *block, struct sl_event event)
{
	const struct sl_fit_stats *stats = sl_fit_stats(e);

	said++;
	event.address = block->address;
	event.bytes = sl_fit_block_bytes(block);
	event.extra = stats->allocated;
	event.extra2 = stats->reserved;
	synth_event(s, thread, name, event);
}

static void record(struct sl_synth *s, struct sl_fit_engine *e, const char *name, const struct sl_fit_block *block,
		   struct sl_event event)
{
	record_on(s, e, 1, name, block, event);
}

/* ops.h has up to four streams. */
static uint64_t handle_of(unsigned stream)
{
	return 0x1000 * (stream && getenv("SWAPPED") ? 5 - stream : stream);
}

static struct sl_fit_block *allocate(struct sl_synth *s, struct sl_fit_engine *e, const struct op *op)
{
	uint64_t before = sl_fit_stats(e)->reserved;
	struct sl_fit_block *block = sl_fit_alloc(e, op->bytes, op->stream, op->pool);
	uint64_t grown = sl_fit_stats(e)->reserved - before;
	unsigned thread = thread_of(op->pool, op->captures);
	static uint64_t told;

	said += grown != 0;
	if (grown)
		synth_call(s, thread, getenv("HIP") ? "hipMalloc" : "cudaMalloc", .address = sl_fit_places_take(&segments, grown),
			   .bytes = grown, .device = 0);
	if (op->captures && told != held[op->pool].driver) {
		synth_call(s, thread, "cudaStreamGetCaptureInfo", .bytes = told = held[op->pool].driver, .device = -1);
		said++;
	}
	record_on(s, e, thread, "block_alloc", block,
		  (struct sl_event){.flags = op->captures ? SL_FLAG_captured : 0,
				    .stream = handle_of(op->stream),
				    .object = 1 + sl_fit_block_bytes(block) - op->bytes});
	return block;
}

static void set_fraction(struct sl_synth *s)
{
	double fraction = getenv("FRACTION") ? strtod(getenv("FRACTION"), NULL) : 0;
	uint64_t bits;

	memcpy(&bits, &fraction, sizeof(bits));
	if (bits)
		synth_call(s, 1, "torch_fraction", .address = bits, .device = 0);
}

/* A sample says that nothing else is on the device. */
static void sample(struct sl_synth *s)
{
	if (!getenv("NO_SAMPLE") && !getenv("LATE_SAMPLE"))
		synth_sample(s, 1, 0, 0, 1ull << 40);
}

/* A pool's first graph makes the pool and is asked for its name, by which later graphs share it. */
static void on_graph(struct sl_synth *s, const struct op *op, unsigned i)
{
	uint64_t graph = 0x9000000 + i, name = 100 + op->pool;

	if (op->kind == OP_BEGIN) {
		held[op->pool].driver = graph << 8;
		synth_call(s, 1, "at::cuda::CUDAGraph::capture_begin", .address = graph, .bytes = held[op->pool].named++ ? name : 0,
			   .extra2 = graph << 8, .device = 0);
		held[op->pool].graphs[held[op->pool].count++] = graph;
	} else if (op->kind == OP_END) {
		graph = held[op->pool].graphs[held[op->pool].count - 1];
		synth_call(s, 1, "at::cuda::CUDAGraph::capture_end", .address = graph, .device = 0);
		synth_call(s, 1, "at::cuda::CUDAGraph::pool", .address = graph, .bytes = name, .device = 0);
		said++;
	} else {
		synth_call(s, 1, "at::cuda::CUDAGraph::reset", .address = held[op->pool].graphs[--held[op->pool].count],
			   .device = 0);
	}
	said++;
}

static void note_free(void *context, const struct sl_fit_block *block)
{
	uint64_t *free_blocks = context;

	free_blocks[++*free_blocks] = block->address;
}

/* Drops the pool, and records a cudaFree for each segment that goes with it. */
static void drop(struct sl_synth *s, struct sl_fit_engine *e, unsigned pool)
{
	static uint64_t before[10000], after[10000];

	before[0] = after[0] = 0;
	sl_fit_each_free(e, note_free, before);
	sl_fit_pool_release(e, pool);
	sl_fit_pool_empty(e, pool);
	sl_fit_each_free(e, note_free, after);
	for (uint64_t i = 1; i <= before[0]; i++) {
		bool is_left = false;

		for (uint64_t k = 1; k <= after[0]; k++)
			is_left |= before[i] == after[k];
		if (!is_left)
			synth_call(s, 1, "cudaFree", .address = before[i], .device = 0);
		said += !is_left;
	}
}

static void on_mempool(struct sl_synth *s, struct sl_fit_engine *e, const struct op *op, bool releases)
{
	uint64_t object = 0xa000000 + op->pool;
	const char *name = op->kind == OP_HOLD	 ? "at::cuda::MemPool::MemPool"
			   : op->kind == OP_DROP ? "at::cuda::MemPool::~MemPool"
						 : "at::cuda::MemPool::id";
	unsigned step = op->kind == OP_BEGIN ? 0 : op->kind == OP_END ? 1 : 2;

	if (op->kind == OP_HOLD || op->kind == OP_DROP) {
		synth_call(s, 1, name, .address = object, .device = 0);
		if (op->kind == OP_DROP) {
			drop(s, e, op->pool);
			synth_call(s, 1, name, .address = object, .extra2 = 1, .device = 0);
			said++;
		}
	} else {
		synth_call(s, thread_of(op->pool, false), name, .address = object, .bytes = 100 + op->pool, .device = 0,
			   .python = lines[releases ? 2 : step]);
	}
	said++;
	if (op->kind == OP_HOLD) /* the program prints the pool's name */
		synth_call(s, 1, "at::cuda::MemPool::id", .address = object, .bytes = 100 + op->pool, .device = 0,
			   .python = lines[3]);
	said += op->kind == OP_HOLD;
	held[op->pool].named += op->kind == OP_HOLD;
}

static void on_pool(struct sl_synth *s, struct sl_fit_engine *e, const struct op *op, unsigned i, bool by_graph)
{
	if (by_graph)
		on_graph(s, op, i);
	else
		on_mempool(s, e, op, op->kind == OP_RELEASE);
	if (op->kind == OP_HOLD)
		sl_fit_pool_hold(e, op->pool);
	else if (op->kind == OP_BEGIN)
		sl_fit_pool_begin(e, op->pool);
	else if (op->kind == OP_END)
		sl_fit_pool_end(e);
	else if (op->kind == OP_RELEASE)
		sl_fit_pool_release(e, op->pool);
	if (op->captures)
		sl_fit_capture(e, op->pool, op->kind == OP_BEGIN);
}

/* A sample between two events, which are a microsecond apart. */
static void sample_late(struct sl_synth *s, struct sl_fit_engine *e)
{
	synth_sample(s, SYNTH_START_NS + 1000 * said + 500, 0, sl_fit_stats(e)->reserved + (300 << 20), 1ull << 40);
}

/* A sample of this process that spans the next `events` events; it has the figure from before them. */
static void sample_own(struct sl_synth *s, struct sl_fit_engine *e, unsigned events)
{
	uint64_t begin_ns = SYNTH_START_NS + 1000 * said + 500;

	synth_own_sample(s, begin_ns, begin_ns + 1000 * events + 10, 0, sl_fit_stats(e)->reserved + (300 << 20), 1ull << 40);
}

static void play(struct sl_synth *s, struct sl_fit_engine *e, const struct op *ops, unsigned count, bool by_stream)
{
	struct sl_fit_block **live = calloc(count, sizeof(*live)), copy;
	unsigned first_later = 0, left = 0;
	const char *late = getenv("LATE_SAMPLE");
	int routed = 0;

	for (unsigned i = 0; i < count; i++) {
		if (i == 10 && late && !strcmp(late, "10"))
			sample_late(s, e);
		if (i == 10 && late && !strcmp(late, "during"))
			sample_own(s, e, 2);
		routed += ops[i].kind == OP_BEGIN ? 1 : ops[i].kind == OP_END ? -1 : 0;
		for (; ops[i].kind == OP_ALLOC && !ops_captures(&ops[i], routed, by_stream) && first_later < i; first_later++) {
			if (ops[first_later].kind == OP_FREE_LATER && ops[first_later].due > i)
				break;
			if (ops[first_later].kind != OP_FREE_LATER)
				continue;
			sl_fit_done(e, ops[first_later].id);
			synth_call(s, 1, "block_done", .address = 0x7000000 + first_later, .device = -1);
		}
		if (ops[i].kind == OP_ALLOC) {
			printf("%u\n", i);
			live[ops[i].id] = allocate(s, e, &ops[i]);
			continue;
		}
		if (ops[i].kind >= OP_HOLD) {
			/* use_mem_pool releases the pool that it has just stopped using */
			on_pool(s, e, &ops[i], i, ops[i].captures || (ops[i].kind == OP_RELEASE && !(left && left == ops[i].pool)));
			left = ops[i].kind == OP_END && !ops[i].captures ? ops[i].pool : 0;
			continue;
		}
		copy = *live[ops[i].id];
		if (ops[i].kind == OP_FREE) {
			sl_fit_free(e, live[ops[i].id]);
		} else {
			sl_fit_free_later(e, live[ops[i].id], ops[i].id);
			synth_call(s, 1, "block_wait", .address = 0x7000000 + i, .device = -1);
		}
		record(s, e, "block_free", &copy, (struct sl_event){0});
	}
	if (late && !strcmp(late, "end"))
		sample_late(s, e);
	if (late && !strcmp(late, "during"))
		sample_own(s, e, 0);
	free(live);
}

static void run_out(struct sl_synth *s, struct sl_fit_engine *e, uint64_t bytes)
{
	for (unsigned i = 0; i < 2; i++) /* PyTorch tries again after it has released what it can */
		synth_call(s, 1, "cudaMalloc", .bytes = bytes, .result = 2, .device = 0);
	synth_event(s, 1, "block_oom",
		    (struct sl_event){
			    .bytes = bytes, .object = 1, .extra = sl_fit_stats(e)->allocated, .extra2 = sl_fit_stats(e)->reserved});
}

/*
 * A device of 104 MiB: a block of 8 MiB is in a segment of 20, blocks of 30 and 14 in one of 60 that a larger block left, half a MiB in
 * one of 2.  Then 38 MiB are asked for, and the driver has 22.  Only if the 8 MiB are freed can 20 more be given back.
 */
static void fragment(struct sl_synth *s, struct sl_fit_engine *e)
{
	const char *goes_on = getenv("GOES_ON");
	const uint64_t mib = 1 << 20;
	struct op op = {.kind = OP_ALLOC};
	struct sl_fit_block *large, copy;

	synth_sample(s, 1, 0, 0, 104 * mib);
	op.bytes = 8 * mib;
	allocate(s, e, &op);
	op.bytes = 60 * mib;
	large = allocate(s, e, &op);
	copy = *large;
	sl_fit_free(e, large);
	record(s, e, "block_free", &copy, (struct sl_event){0});
	op.bytes = 30 * mib;
	allocate(s, e, &op);
	op.bytes = 14 * mib;
	allocate(s, e, &op);
	op.bytes = mib / 2;
	for (long n = getenv("LONG") ? atol(getenv("LONG")) : 0; n--;) {
		large = allocate(s, e, &op);
		copy = *large;
		sl_fit_free(e, large);
		record(s, e, "block_free", &copy, (struct sl_event){0});
	}
	allocate(s, e, &op);
	run_out(s, e, 38 * mib);
	if (!goes_on)
		return;
	op.bytes = mib;
	allocate(s, e, &op);
	if (!strcmp(goes_on, "again"))
		run_out(s, e, 38 * mib);
}

static void pass_fraction(struct sl_synth *s, struct sl_fit_engine *e)
{
	const uint64_t mib = 1 << 20;
	struct op op = {.kind = OP_ALLOC, .bytes = 40 * mib};

	synth_capability(s, "memory_fraction", "not seen");
	if (!getenv("NO_SAMPLE"))
		synth_sample(s, 1, 0, 0, 104 * mib);
	allocate(s, e, &op);
	synth_event(
		s, 1, "block_oom",
		(struct sl_event){
			.bytes = 20 * mib, .object = 1, .extra = sl_fit_stats(e)->allocated, .extra2 = sl_fit_stats(e)->reserved});
}

static void lack_beside(struct sl_synth *s, struct sl_fit_engine *e)
{
	const uint64_t mib = 1 << 20, library = 0x7f0000000000;
	struct op op = {.kind = OP_ALLOC, .bytes = 60 * mib};

	synth_module(s, library, library + mib, "/lib/libcublas.so.13");
	synth_sample(s, 1, 0, 0, 104 * mib);
	allocate(s, e, &op);
	synth_call(s, 1, "cudaMalloc", .bytes = 64 * mib, .result = 2, .device = 0, .caller = library + 0x1000);
	op.bytes = 4 * mib;
	if (getenv("GOES_ON"))
		allocate(s, e, &op);
}

static struct op *train(unsigned batch, unsigned *count)
{
	enum { PARAMETERS = 20, LAYERS = 12, STEPS = 5 };
	struct op *ops = calloc(PARAMETERS + 2 * STEPS * LAYERS, sizeof(*ops));

	*count = 0;
	for (unsigned i = 0; i < PARAMETERS; i++)
		ops[(*count)++] = (struct op){.kind = OP_ALLOC, .id = i, .bytes = 12 << 20};
	for (unsigned step = 0; step < STEPS; step++)
		for (unsigned i = 0; i < 2 * LAYERS; i++) {
			bool forward = i < LAYERS;
			unsigned layer = forward ? i : 2 * LAYERS - 1 - i;

			ops[(*count)++] = (struct op){.kind = forward ? OP_ALLOC : OP_FREE,
						      .id = PARAMETERS + layer,
						      .bytes = (uint64_t)batch * (3000000 + 100000 * (uint64_t)layer)};
		}
	return ops;
}

int main(int argc, char **argv)
{
	struct sl_fit_machine machine = {.device_total = 1ull << 40, .capacity = UINT64_MAX};
	unsigned major, minor, count;
	struct sl_synth *s;
	struct op *ops;
	char release[32];

	if (argc != 4 || sscanf(argv[2], "%u.%u", &major, &minor) != 2)
		return 2;
	machine.release = SL_FIT_RELEASE(major, minor);
	machine.ties = segments.model = getenv("SLOTS") ? SL_FIT_REUSED : SL_FIT_ASCENDING;
	snprintf(release, sizeof(release), "c10 %s", argv[2]);
	if (!strcmp(argv[3], "other")) {
		s = synth_new(argv[1], 0, 4242);
		synth_capability(s, "pytorch", release);
		synth_call(s, 1, "cudaMalloc", .address = segments.next, .bytes = 3 << 20, .device = 0);
		synth_call(s, 1, "block_alloc", .address = segments.next, .bytes = 1 << 20, .extra = 1 << 20, .extra2 = 3 << 20,
			   .object = 1);
		synth_close(s, SYNTH_COMPLETED);
		return 0;
	}
	if (!strcmp(argv[3], "fragmented")) {
		s = synth_new(argv[1], 0, 4242);
		synth_capability(s, "pytorch", release);
		fragment(s, sl_fit_new(&machine, &sl_fit_defaults));
		synth_close(s, SYNTH_COMPLETED);
		return 0;
	}
	if (!strcmp(argv[3], "beside") || !strcmp(argv[3], "fraction")) {
		s = synth_new(argv[1], 0, 4242);
		synth_capability(s, "pytorch", release);
		(*argv[3] == 'b' ? lack_beside : pass_fraction)(s, sl_fit_new(&machine, &sl_fit_defaults));
		synth_close(s, SYNTH_COMPLETED);
		return 0;
	}
	ops = !strncmp(argv[3], "batch=", 6) ? train((unsigned)atoi(argv[3] + 6), &count)
					     : ops_make(strtoull(argv[3], NULL, 10), &count);
	for (unsigned i = 0; i < count; i++)
		if (ops[i].kind == OP_EMPTY || (ops[i].kind == OP_HOLD && machine.release < SL_FIT_RELEASE(2, 8)))
			return 0;
	for (unsigned i = 0; i < count; i++)
		if (ops[i].newer && sl_fit_pool_newest(machine.release))
			ops[i].pool = ops[i].newer;
	s = synth_new(argv[1], 0, 4242 + (!strncmp(argv[3], "batch=", 6) ? atoi(argv[3] + 6) : 0));
	synth_capability(s, "pytorch", release);
	if (!strncmp(argv[3], "batch=", 6))
		synth_metadata(s, "batch", argv[3] + 6);
	if (getenv("GRAPH"))
		synth_call(s, 1, "cuGraphInstantiate_v2", .address = 0x5555000, .object = 0x6666000, .device = -1);
	if (getenv("BLIND"))
		synth_capability(s, "memory_fraction", "not seen");
	if (getenv("ASKS_FREE"))
		synth_capability(s, "free_memory_asked", getenv("ASKS_FREE"));
	for (unsigned i = 0; i < 4; i++)
		lines[i] = synth_python_frames(s, 2,
					       (struct synth_frame[]){{"MemPool.id", "memory.py", 5},
								      {i < 3 ? "use_mem_pool" : "main", "memory.py", 10 + i}});
	sample(s);
	set_fraction(s);
	play(s, sl_fit_new(&machine, &sl_fit_defaults), ops, count, machine.release >= SL_FIT_RELEASE(2, 13));
	synth_close(s, SYNTH_COMPLETED);
	return 0;
}
