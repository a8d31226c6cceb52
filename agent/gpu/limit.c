/* SPDX-License-Identifier: MIT */
/*
 * Blocks are kept in a table of open addressing that threads change by compare and exchange: no lock is held across a driver call
 * or anywhere else.  A full table stops counting, with a note, and then no call is made to fail.
 *
 * Known limits:
 * - Memory of graphs counts only as part of what NVML reports beyond the blocks.  Memory that pools keep does not count.
 * - The release of a VMM handle counts as its free, although a mapping may keep the memory.
 * - A call that is left by longjmp keeps its claim if the ring had no room for it.
 * - cuCtxDetach counts as the end of its context.
 * - The first allocation of a device is checked against its context only if the program has asked how much is free.
 */
#include "agent/gpu/gpu.h"
#include "agent/file/file.h"

#define DEVICES 64
#define BLOCKS	(1u << 17)
#define PROBES	512

#define OF_NO_CONTEXT UINT64_MAX /* what cuMemCreate made outlives every context */

/* Addresses of device memory are aligned: no real key is one of these. */
enum { KEY_NONE, KEY_GONE, KEY_BUSY };

struct block {
	_Atomic uint64_t key;
	_Atomic uint64_t bytes;
	_Atomic uint64_t context; /* 0: not known */
	_Atomic uint32_t device;
	_Atomic bool pool;
};

bool sl_limit_active;

static uint64_t limit_bytes;
static struct block *blocks;
static _Atomic uint64_t live[DEVICES], overhead[DEVICES];    /* live bytes, including claims */
static _Atomic uint64_t known_overhead[DEVICES];	     /* before the primary context went; 0: none */
static _Atomic uint64_t pools[DEVICES], most_pools[DEVICES]; /* live bytes of pools' blocks, and the most that ever were */
static uint64_t least_overhead[DEVICES];		     /* that NVML ever told; 0: none.  Writer thread */
static _Atomic uint32_t claims[DEVICES];
static _Atomic uint32_t learned[DEVICES];
static _Atomic uint64_t primary[DEVICES]; /* the primary context; 0: not known */
static _Atomic uint32_t overflowed;

static uint64_t inject_at; /* 0: off */
static char inject_api[64];
static _Atomic uint64_t injectable;

/* "3" or "3:cudaMalloc"; any other text injects nothing. */
static void read_injection(const char *text)
{
	size_t digits;

	inject_at = 0;
	if (!text || !sl_procfile_digits(text, &inject_at))
		return;
	digits = strspn(text, "0123456789");
	if (text[digits] == ':' && strlen(text + digits + 1) < sizeof(inject_api))
		strcpy(inject_api, text + digits + 1);
	else if (text[digits])
		inject_at = 0;
}

void sl_limit_start(const struct sl_options *options)
{
	/* a forked child inherits its parent's table, whose blocks it does not have */
	inject_api[0] = 0;
	atomic_store(&injectable, 0);
	atomic_store(&overflowed, 0);
	for (unsigned i = 0; i < DEVICES; i++) {
		atomic_store(&live[i], 0);
		atomic_store(&overhead[i], 0);
		atomic_store(&known_overhead[i], 0);
		atomic_store(&pools[i], 0);
		atomic_store(&most_pools[i], 0);
		least_overhead[i] = 0;
		atomic_store(&claims[i], 0);
		atomic_store(&learned[i], 0);
		atomic_store(&primary[i], 0);
	}
	read_injection(options->inject_oom);
	if (options->inject_oom && !inject_at)
		sl_define_note("STORMLOG_INJECT_OOM cannot be read, so no failure is injected: write N or N:API, as 3:cudaMalloc");
	limit_bytes = options->limit;
	if (limit_bytes && blocks)
		memset(blocks, 0, BLOCKS * sizeof(*blocks));
	else if (limit_bytes)
		blocks = sl_pages_map(BLOCKS * sizeof(*blocks));
	if (limit_bytes && !blocks) {
		limit_bytes = 0;
		sl_define_note("no memory for STORMLOG_LIMIT: no limit");
	}
	sl_limit_active = limit_bytes || inject_at;
}

bool sl_limit_injects(unsigned api, enum sl_kind kind, uint64_t bytes)
{
	(void)kind;
	(void)bytes;
	if (!inject_at || (*inject_api && !sl_hooks_named(sl_hooks[api].name, inject_api)))
		return false;
	return atomic_fetch_add_explicit(&injectable, 1, memory_order_relaxed) + 1 == inject_at;
}

/* True: a kind that certainly takes memory of the device; managed memory may be on the host. */
static bool counts(int device, enum sl_kind kind)
{
	if (device < 0 || device >= DEVICES)
		return false;
	return kind == SL_KIND_device || kind == SL_KIND_pool || kind == SL_KIND_vmm || kind == SL_KIND_array ||
	       kind == SL_KIND_graph;
}

static uint64_t used(int device)
{
	return atomic_load_explicit(&live[device], memory_order_relaxed) +
	       atomic_load_explicit(&overhead[device], memory_order_relaxed);
}

/* The calling thread's device; -1: none. */
static int current_device(enum sl_vendor *vendor)
{
	for (*vendor = 0; *vendor < SL_VENDOR_COUNT; (*vendor)++) {
		int device = sl_vendor_current(*vendor).device;

		if (device >= 0)
			return device;
	}
	return -1;
}

/*
 * Estimates what the context takes until the writer thread has asked NVML: the memory in use on the device without our blocks. 
 * Other processes are part of that, so it is at most what was known before a context went, or 1 GiB where nothing was.
 */
static void learn(int device)
{
	uint64_t free_bytes, total_bytes, blocks_bytes, after, gone, earlier;
	enum sl_vendor vendor;

	if (device < 0 || device >= DEVICES || atomic_load_explicit(&learned[device], memory_order_relaxed) ||
	    current_device(&vendor) != device || !sl_limit_live(device, &blocks_bytes) ||
	    !sl_vendor_memory(vendor, &free_bytes, &total_bytes) || !sl_limit_live(device, &after) || blocks_bytes != after)
		return;
	if (sl_vendor_integrated(vendor, device)) { /* programs of the host use its memory too: the context's part is not known */
		atomic_store(&learned[device], 1);
		return;
	}
	gone = total_bytes - free_bytes > blocks_bytes ? total_bytes - free_bytes - blocks_bytes : 0;
	earlier = atomic_load(&overhead[device]) ?: atomic_load(&known_overhead[device]) ?: 1ull << 30;
	atomic_store(&overhead[device], gone < earlier ? gone : earlier);
	atomic_store(&learned[device], 1);
}

bool sl_limit_refuses(int device, enum sl_kind kind, uint64_t bytes, struct sl_limit_claim *claim)
{
	uint64_t before, usable;

	if (!limit_bytes || !counts(device, kind) || !bytes)
		return false;
	if (!atomic_load_explicit(&learned[device], memory_order_relaxed) &&
	    (atomic_load(&overhead[device]) || atomic_load(&known_overhead[device])))
		learn(device); /* a context has gone */
	atomic_fetch_add(&claims[device], 1);
	before = atomic_load(&live[device]);
	do {
		usable = atomic_load_explicit(&overhead[device], memory_order_relaxed);
		usable = usable < limit_bytes ? limit_bytes - usable : 0;
		if (before >= usable || bytes > usable - before) {
			atomic_fetch_sub(&claims[device], 1);
			return true;
		}
	} while (!atomic_compare_exchange_weak(&live[device], &before, before + bytes));
	*claim = (struct sl_limit_claim){.device = device, .bytes = bytes};
	return false;
}

/* Ends a claim that became a block or was given up. */
static void drop_claim(struct sl_limit_claim *claim)
{
	claim->bytes = 0;
	atomic_fetch_sub(&claims[claim->device], 1);
}

void sl_limit_release(struct sl_limit_claim *claim)
{
	if (!claim->bytes)
		return;
	atomic_fetch_sub(&live[claim->device], claim->bytes);
	if (claim->pool)
		atomic_fetch_sub(&pools[claim->device], claim->bytes);
	drop_claim(claim);
}

/* A VMM handle could equal an address, so its key differs. */
static uint64_t key_of(enum sl_kind kind, uint64_t address)
{
	return kind == SL_KIND_vmm ? address ^ 0x9e00000000000000ull : address;
}

static struct block *slot_of(uint64_t key, unsigned probe)
{
	return &blocks[((unsigned)((key * 0x9e3779b97f4a7c15ull) >> 40) + probe) & (BLOCKS - 1)];
}

/* Removes a block.  The thread that takes out its key also subtracts its bytes. */
static void remove_block(struct block *block, uint64_t key, struct sl_limit_claim *claim)
{
	uint64_t bytes = atomic_load_explicit(&block->bytes, memory_order_relaxed);
	uint64_t context = atomic_load_explicit(&block->context, memory_order_relaxed);
	uint32_t device = atomic_load_explicit(&block->device, memory_order_relaxed);
	bool pool = atomic_load_explicit(&block->pool, memory_order_relaxed);

	atomic_fetch_add(&claims[device], 1);
	if (atomic_compare_exchange_strong(&block->key, &key, KEY_GONE) && bytes)
		*claim = (struct sl_limit_claim){.device = (int)device, .bytes = bytes, .context = context, .pool = pool};
	else
		atomic_fetch_sub(&claims[device], 1);
}

static void remove_key(uint64_t key, struct sl_limit_claim *claim)
{
	for (unsigned probe = 0; probe < PROBES; probe++) {
		struct block *block = slot_of(key, probe);
		uint64_t found = atomic_load_explicit(&block->key, memory_order_acquire);

		if (found == key)
			remove_block(block, key, claim);
		if (found == KEY_NONE || claim->bytes)
			return;
	}
}

/* Adds a block whose bytes are counted already. */
static bool insert(uint64_t key, struct sl_vendor_context place, uint64_t bytes, bool pool)
{
	for (unsigned probe = 0; probe < PROBES; probe++) {
		struct block *block = slot_of(key, probe);
		uint64_t found = atomic_load_explicit(&block->key, memory_order_relaxed);

		if (found != KEY_NONE && found != KEY_GONE)
			continue;
		if (!atomic_compare_exchange_strong(&block->key, &found, KEY_BUSY))
			continue;
		atomic_store_explicit(&block->device, (uint32_t)place.device, memory_order_relaxed);
		atomic_store_explicit(&block->context, place.context, memory_order_relaxed);
		atomic_store_explicit(&block->pool, pool, memory_order_relaxed);
		atomic_store_explicit(&block->bytes, bytes, memory_order_relaxed);
		atomic_store_explicit(&block->key, key, memory_order_release);
		return true;
	}
	return false;
}

/* What a pool keeps of its freed blocks serves its next ones, and NVML counts it: sl_limit_overhead takes it off. */
static void add_to_pools(int device, uint64_t bytes)
{
	uint64_t now = atomic_fetch_add(&pools[device], bytes) + bytes, peak = atomic_load(&most_pools[device]);

	while (now > peak && !atomic_compare_exchange_weak(&most_pools[device], &peak, now))
		;
}

void sl_limit_allocated(struct sl_vendor_context place, enum sl_kind kind, uint64_t address, uint64_t bytes,
			struct sl_limit_claim *claim)
{
	struct sl_limit_claim missed = {0};
	uint64_t key = key_of(kind, address);
	int device = place.device;

	if (!limit_bytes || !counts(device, kind) || !address || !bytes) {
		sl_limit_release(claim);
		return;
	}
	if (claim->bytes && claim->device != device)
		sl_limit_release(claim);
	if (!claim->bytes)
		atomic_fetch_add(&claims[device], 1);
	atomic_fetch_add(&live[device], bytes - claim->bytes); /* the earlier figure was an estimate, or none */
	*claim = (struct sl_limit_claim){.device = device, .bytes = bytes, .pool = kind == SL_KIND_pool};
	if (claim->pool)
		add_to_pools(device, bytes);
	remove_key(key, &missed); /* the address was allocated again, so its free was not seen */
	sl_limit_release(&missed);
	if (kind == SL_KIND_vmm)
		place.context = OF_NO_CONTEXT;
	if (insert(key, place, bytes, claim->pool)) {
		drop_claim(claim);
	} else {
		sl_limit_release(claim);
		if (!atomic_exchange(&overflowed, 1))
			sl_define_note("more live blocks than STORMLOG_LIMIT can count: some are outside the limit");
	}
	learn(device);
}

void sl_limit_freed(enum sl_kind kind, uint64_t address, struct sl_limit_claim *claim)
{
	if (limit_bytes && address)
		remove_key(key_of(kind, address), claim);
}

void sl_limit_primary(struct sl_vendor_context place)
{
	if (place.device >= 0 && place.device < DEVICES)
		atomic_store(&primary[place.device], place.context);
}

/*
 * True: the block ends with that context.  A block of an unknown context ends with its device's primary one, and with that,
 * where it is not known itself, every block of the device.
 */
static bool ends_with(const struct block *block, struct sl_vendor_context place)
{
	uint64_t context = atomic_load(&block->context), its_primary;

	if (place.context)
		return context == place.context;
	if (atomic_load(&block->device) != (uint32_t)place.device)
		return false;
	its_primary = atomic_load(&primary[place.device]);
	return !context || !its_primary || context == its_primary;
}

void sl_limit_context_gone(struct sl_vendor_context place)
{
	uint64_t bytes;

	if (!limit_bytes || (!place.context && (place.device < 0 || place.device >= DEVICES)))
		return;
	for (unsigned i = 0; i < BLOCKS; i++) {
		uint64_t key = atomic_load_explicit(&blocks[i].key, memory_order_acquire);
		struct sl_limit_claim gone = {0};

		if (key <= KEY_BUSY || !ends_with(&blocks[i], place))
			continue;
		remove_block(&blocks[i], key, &gone);
		sl_limit_release(&gone);
	}
	if (!place.context) { /* where a context is current yet, what it takes is asked anew */
		bytes = atomic_exchange(&overhead[place.device], 0);
		if (bytes) /* a reset of the runtime's is one of the driver's, too */
			atomic_store(&known_overhead[place.device], bytes);
		atomic_store_explicit(&learned[place.device], 0, memory_order_relaxed);
		return;
	}
	for (int device = 0; device < DEVICES; device++) /* it is asked anew what the others take */
		atomic_store_explicit(&learned[device], 0, memory_order_relaxed);
}

void sl_limit_clamp(int device, uint64_t *free_bytes, uint64_t *total_bytes)
{
	enum sl_vendor vendor;
	uint64_t used_bytes, left;

	if (!limit_bytes)
		return;
	if (device < 0)
		device = current_device(&vendor);
	learn(device);
	used_bytes = device >= 0 && device < DEVICES ? used(device) : 0;
	left = used_bytes < limit_bytes ? limit_bytes - used_bytes : 0;
	if (free_bytes && *free_bytes > left)
		*free_bytes = left;
	if (total_bytes && *total_bytes > limit_bytes)
		*total_bytes = limit_bytes;
}

bool sl_limit_live(int device, uint64_t *bytes)
{
	*bytes = 0;
	if (device < 0 || device >= DEVICES)
		return true;
	*bytes = atomic_load(&live[device]);
	return !atomic_load(&claims[device]);
}

void sl_limit_overhead(int device, uint64_t process_bytes, uint64_t live_bytes)
{
	uint64_t rest, emptied_bytes, previous, in_pools, *least;

	if (!limit_bytes || device < 0 || device >= DEVICES)
		return;
	least = &least_overhead[device];
	if (!process_bytes && !*least)
		return; /* it was never listed */
	rest = process_bytes > live_bytes ? process_bytes - live_bytes : 0;
	previous = *least ? *least : atomic_load(&overhead[device]);
	*least = previous && previous < rest ? previous : rest;
	in_pools = atomic_load(&pools[device]);
	emptied_bytes = atomic_load(&most_pools[device]);
	emptied_bytes = emptied_bytes > in_pools ? emptied_bytes - in_pools : 0;
	if (rest <= *least) /* they keep nothing */
		atomic_store(&most_pools[device], in_pools);
	atomic_store(&overhead[device], rest > *least + emptied_bytes ? rest - emptied_bytes : *least);
	atomic_store(&learned[device], process_bytes != 0); /* a context that comes is asked about */
}
