/* SPDX-License-Identifier: MIT */
/*
 * Return addresses of the calling thread's stack, without libunwind where every frame has a simple rule (cfi.h).
 *
 * A frame is known by its return address, its stack pointer and, where a rule outside it needs it, its rbp; what lies
 * outside follows from these and from the words that hold the next return addresses and the saved rbp.  So if one frame of
 * the last walk is the same and none of those words has changed, the frames outside it are the same too: they are compared
 * instead of walked, and a stack that has not changed at all costs two loads a frame.
 *
 * Belongs to one thread; a zeroed one is empty.  A walk that is left by longjmp leaves nothing wrong behind.  Nor does one
 * that a signal handler's walk interrupts: the handler's result is kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/stacks/cfi.h"
#include "agent/stacks/trails.h"

#ifdef __x86_64__
#define SL_WALK_IS_HERE 1
#else
#define SL_WALK_IS_HERE 0 /* libunwind alone */
#endif

#define SL_WALK_FRAMES 288u
#define SL_WALK_RULES  8192u

struct sl_walk_frame {
	uintptr_t sp, bp;
	const volatile uintptr_t *bp_slot; /* where the frame inside has saved bp; NULL: it has not */
	const volatile uintptr_t *check;   /* bp_slot where bp matters, else the frame's own bp */
	bool bp_matters;		   /* a rule from here outward needs this frame's bp */
	struct sl_cfi_rule rule;
};

struct sl_walk_rule {
	uintptr_t pc;
	struct sl_cfi_rule rule;
};

struct sl_walk {
	uint64_t unloads; /* the owner's, at which the rules were read (sl_walk_renew); 0: there are no rules */
	unsigned max;	  /* `max` of the last walk */
	uint32_t first;	  /* first of the last walk's frames; they end at SL_WALK_FRAMES.  0: there was none */
	bool cut;	  /* there are more frames outside */
	bool alone;	  /* the owner's: nobody else can be asked, so a stack ends where it cannot be followed */
	bool foreign;	  /* the last walk was, or led, to a stack that is not the thread's own: nothing of it holds for the next */
	uint32_t turn;	  /* walks begun */
	uintptr_t guess;  /* SL_WALK_UNKNOWN: where libunwind would look for a frame, by rbp alone; 0: nowhere, or elsewhere */
	uintptr_t signal; /* SL_WALK_UNKNOWN: where the handler returns to at whose frame the walk ended; 0: at another */
	uint32_t built;	  /* the turn that these frames belong to */
	uint64_t named;	  /* the owner's number for a stack, and above it the turn that built the stack */
	uintptr_t pc[SL_WALK_FRAMES];
	struct sl_walk_frame frame[SL_WALK_FRAMES];
	struct {
		uintptr_t pc[SL_WALK_FRAMES];
		struct sl_walk_frame frame[SL_WALK_FRAMES];
	} fresh; /* frames of the walk that is under way */
	struct sl_walk_rule rule[SL_WALK_RULES];
	struct sl_trail_start start; /* innermost frames of the walk that is under way */
	uint32_t started;	     /* turn of the walk that is under way */
	struct sl_cache trails;	     /* stacks that have a name */
};

enum sl_walk_end {
	SL_WALK_UNKNOWN, /* a frame has no simple rule: ask libunwind.  Where sl_cfi_lies, the stack ends there instead */
	SL_WALK_SAME,	 /* every frame is as it was at the last walk */
	SL_WALK_KNOWN,	 /* a stack that has a name already; its addresses are not given */
	SL_WALK_DONE,
};

struct sl_walked {
	uintptr_t *pcs; /* innermost first, the caller's own among them; valid until the next walk */
	uint32_t count; /* at most `max` */
	uint32_t built;
	uint32_t name; /* SL_WALK_KNOWN */
	bool gone;     /* the frames outside of these lie on a stack that is no more: nobody else may look for them */
};

enum sl_walk_end sl_walk(struct sl_walk *walk, unsigned max, struct sl_walked *walked);

/* Gives the stack that was just walked the owner's number; kept until another stack takes its place. */
static inline uint32_t sl_walk_name_of(const struct sl_walk *walk, const struct sl_walked *walked)
{
	return walk->named >> 32 == walked->built ? (uint32_t)walk->named : 0;
}

void sl_walk_name(struct sl_walk *walk, const struct sl_walked *walked, uint32_t name);

/* Whether `address`, of a frame of ours, lies in one of the frames from the calling function outward. */
enum sl_walk_way {
	SL_WALK_UNCLEAR, /* unknown: a frame without a simple rule came first */
	SL_WALK_INSIDE,
	SL_WALK_OTHER,	   /* another function's frame is there now */
	SL_WALK_ENTERED,   /* a signal handler's frame came first */
	SL_WALK_ELSEWHERE, /* the stack's end came first: it is another stack */
};
/*
 * *sp: where the last frame begins; a signal handler's is the ucontext_t of what was interrupted.  Of the frame that `address` lies
 * in: where that ends.
 */
enum sl_walk_way sl_walk_way_to(const void *address, uintptr_t *sp);

/* Forgets the rules, and with the next walk all names: objects were unloaded. */
void sl_walk_renew(struct sl_walk *walk, uint64_t unloads);

/* Forgets all names that were given. */
void sl_walk_forget(struct sl_walk *walk);
