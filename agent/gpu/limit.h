/* SPDX-License-Identifier: MIT */
/*
 * STORMLOG_INJECT_OOM and STORMLOG_LIMIT: failures on demand.  Off: one load of sl_limit_active on the path of an
 * allocation and nothing else.  On, limit.c keeps the process's live bytes per device, the one place in the
 * agent that does (doc/architecture.md says why).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/gpu/vendor.h"
#include "agent/process/options.h"
#include "common/event.h"

extern bool sl_limit_active SL_HIDDEN;

void sl_limit_start(const struct sl_options *options); /* at the first GPU call */

/*
 * Called when an allocating call of the application begins (the outermost of its class).  True: it is to fail.  Then the driver
 * call inside it fails or, if there is none, the call itself.
 */
bool sl_limit_injects(unsigned api, enum sl_kind kind, uint64_t bytes);

/* Bytes of a call under way that count as live: of an allocation that may succeed, or of a block that may be freed. */
struct sl_limit_claim {
	uint64_t bytes;	  /* 0: none */
	uint64_t context; /* of the block that is freed; 0: not known */
	int device;
	bool pool; /* of a pool's block */
	bool kept; /* the slot of its event also has the claim (sl_limit_keep) */
};

/*
 * Called before a driver-level (or HIP) allocation of device memory.  True: it exceeds the limit.  Otherwise its bytes are claimed
 * in the same step, so that two threads cannot both take the last room.
 */
bool sl_limit_refuses(int device, enum sl_kind kind, uint64_t bytes, struct sl_limit_claim *claim);

/*
 * What the driver does, for the table of live blocks.  Called after an allocation, whose claim becomes the block; and before a
 * free, whose block becomes a claim until the call has returned.
 */
void sl_limit_allocated(struct sl_vendor_context place, enum sl_kind kind, uint64_t address, uint64_t bytes,
			struct sl_limit_claim *claim);
void sl_limit_freed(enum sl_kind kind, uint64_t address, struct sl_limit_claim *claim);

/* The primary context of place.device is place.context. */
void sl_limit_primary(struct sl_vendor_context place);

/* The context is gone, and its blocks with it: with context 0 the primary one of the device, else place.device is not looked at. */
void sl_limit_context_gone(struct sl_vendor_context place);

/* Drops the claim: the allocation failed, or the block was freed. */
void sl_limit_release(struct sl_limit_claim *claim);

/*
 * A claim is kept in the slot of its event too, because the stack of an unwound call belongs to the program again.  Whoever
 * takes the claim out of the slot must drop it.  `word` holds one claim, 0 none.
 */
static inline void sl_limit_keep(struct sl_limit_claim *claim, uint64_t *word)
{
	if (!claim->bytes || *word)
		return;
	claim->kept = true;
	*word = claim->bytes << 8 | (uint64_t)claim->pool << 7 | (uint8_t)claim->device;
}

static inline uint64_t sl_limit_take_kept(uint64_t *word)
{
	return __atomic_exchange_n(word, 0, __ATOMIC_RELAXED);
}

static inline void sl_limit_release_kept(uint64_t *word)
{
	uint64_t kept = sl_limit_take_kept(word);
	struct sl_limit_claim claim = {.bytes = kept >> 8, .device = kept & 0x7f, .pool = kept >> 7 & 1};

	sl_limit_release(&claim);
}

/*
 * Clamps to the limit what the program asked about memory, after the real call succeeded: the same for cuMemGetInfo,
 * cuDeviceTotalMem, device properties and NVML. Pointers may be NULL; device -1 is the calling thread's. Clamped figures are not
 * changed again.
 */
void sl_limit_clamp(int device, uint64_t *free_bytes, uint64_t *total_bytes);

/* Live bytes on the device, as counted for the limit; 0 without a limit.  False: a block comes or goes at this moment. */
bool sl_limit_live(int device, uint64_t *bytes);

/*
 * Writer thread, from NVML: the process held process_bytes on the device (0: it is not listed) while its blocks were live_bytes
 * before and after, so the difference (context, modules) counts inside the limit from now on, without what its pools may keep.
 */
void sl_limit_overhead(int device, uint64_t process_bytes, uint64_t live_bytes);
