/* SPDX-License-Identifier: MIT */
#include "agent/record.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/gpu/device.h"
#include "agent/hooks/hooks.h"
#include "agent/labels.h"
#include "agent/gpu/limit.h"
#include "agent/preload.h"
#include "agent/stacks/stacks.h"

#define FRAME_CHECK 0x5354524d4c4f4721ull
#define FRAME_OPEN  0x4f50454e4c4f4720ull /* slot_check of a frame that has no event, or not yet */
#define FRAME_EVENT 1u /* in slot_check, whose other bits vouch for the slot: calls inside are part of the event */
#define REFUSED_MAX 16

__thread struct sl_thread sl_thread;

/* Calls of one class, one inside the other, are one event. */
enum class { CLASS_CALL, CLASS_MEMORY, CLASS_POOL, CLASS_CONTEXT, CLASS_MODULE, CLASS_LIMIT, CLASS_GRAPH };

static const struct traits {
	uint8_t class : 5;
	bool stack : 1; /* taken before the call, so that a call in flight has it */
	bool place : 1; /* device and context are asked after it */
	bool loads : 1; /* code or a context: takes memory that no allocation names */
} traits[SL_VERB_COUNT] = {
	[SL_VERB_ALLOC] = {CLASS_MEMORY, true, true},
	[SL_VERB_FREE] = {CLASS_MEMORY},
	[SL_VERB_RESERVE] = {CLASS_MEMORY, true},
	[SL_VERB_UNRESERVE] = {CLASS_MEMORY},
	[SL_VERB_MAP] = {CLASS_MEMORY, true, true}, /* asked of what is imported alone */
	[SL_VERB_UNMAP] = {CLASS_MEMORY},
	[SL_VERB_RETAIN] = {CLASS_MEMORY},
	[SL_VERB_EXPORT] = {CLASS_MEMORY},
	[SL_VERB_POOL_CREATE] = {CLASS_POOL, true, true},
	[SL_VERB_POOL_DESTROY] = {CLASS_POOL},
	[SL_VERB_POOL_SET] = {CLASS_POOL},
	[SL_VERB_POOL_TRIM] = {CLASS_POOL},
	[SL_VERB_CONTEXT_CREATE] = {CLASS_CONTEXT, true, true, true},
	[SL_VERB_CONTEXT_DESTROY] = {CLASS_CONTEXT},
	[SL_VERB_PRIMARY_RETAIN] = {CLASS_CONTEXT, true},
	[SL_VERB_PRIMARY_RELEASE] = {CLASS_CONTEXT},
	[SL_VERB_DEVICE_RESET] = {CLASS_CONTEXT, false, true},
	[SL_VERB_MODULE_LOAD] = {CLASS_MODULE, true, true, true},
	[SL_VERB_MODULE_UNLOAD] = {CLASS_MODULE},
	[SL_VERB_LIMIT] = {CLASS_LIMIT, true, true},
	[SL_VERB_GRAPH_ALLOC] = {CLASS_GRAPH, true, true},
	[SL_VERB_GRAPH_FREE] = {CLASS_GRAPH},
	[SL_VERB_GRAPH_CREATE] = {CLASS_GRAPH},
	[SL_VERB_GRAPH_INSTANTIATE] = {CLASS_GRAPH, true, true},
	[SL_VERB_GRAPH_LAUNCH] = {CLASS_GRAPH},
	[SL_VERB_GRAPH_DESTROY] = {CLASS_GRAPH},
	[SL_VERB_EXEC_DESTROY] = {CLASS_GRAPH},
	[SL_VERB_GRAPH_TRIM] = {CLASS_GRAPH, false, true},
};

static bool on_alternate_stack(void)
{
	stack_t stack;

	return !syscall(SYS_sigaltstack, NULL, &stack) && (stack.ss_flags & SS_ONSTACK);
}

void sl_record_enter_at(uintptr_t frame)
{
	sl_agent_begin_at(&sl_thread, frame);
}

void sl_record_leave(void)
{
	sl_agent_end(&sl_thread);
}

/*
 * A frame that was left can look alive: what the program has on the stack in its place may have a hole there.  Our own
 * calls, and a signal handler's that interrupted us, are a few; where many come one after the other, nobody is inside.
 */
static bool too_many_refused(struct sl_thread *thread)
{
	uint64_t next = thread->ring ? thread->ring->next : 0;

	if (!thread->ring) /* the writer */
		return false;
	thread->refused = thread->refused_at == next ? thread->refused + 1 : 1;
	thread->refused_at = next;
	return thread->refused > REFUSED_MAX;
}

bool sl_record_inside_at(uintptr_t frame)
{
	struct sl_thread *thread = &sl_thread;

	if (SL_LIKELY(!thread->inside))
		return false;
	if (((const uintptr_t *)thread->inside_at)[1] == thread->inside_check &&
	    (frame < thread->inside_at || on_alternate_stack()) && !too_many_refused(thread))
		return true;
	thread->inside = 0;
	thread->refused = 0;
	sl_stacks_left();
	return false;
}

/* Of a frame that lies `at`, itself or a copy. */
static uintptr_t check_of(const struct sl_frame *frame, const struct sl_frame *at)
{
	return (uintptr_t)at ^ (uintptr_t)frame->outer >> 1 ^ (uintptr_t)frame->owner << 1 ^ (uintptr_t)FRAME_CHECK;
}

static uintptr_t slot_check_of(const struct sl_frame *frame)
{
	return ((uintptr_t)frame->slot ^ frame->seq << 1 ^ (uintptr_t)FRAME_CHECK) | FRAME_EVENT;
}

/* It is a call under way that is an event of its own, in the ring or, where that had no room, counted as lost. */
static inline bool is_event(const struct sl_frame *frame)
{
	return frame && frame->check == check_of(frame, frame) && frame->slot_check == slot_check_of(frame);
}

/*
 * A frame that may have been left, and lie where any call, ours and a signal handler's too, writes its own: it is looked at in
 * a copy.  True: what that says of its slot and of outer calls can be trusted.  AddressSanitizer need not say whose it is.
 */
static __attribute__((no_sanitize("address"))) bool copy_whole(struct sl_frame *copy, const struct sl_frame *at)
{
	*copy = (struct sl_frame){.outer = at->outer,
				  .owner = at->owner,
				  .check = at->check,
				  .slot_check = at->slot_check,
				  .slot = at->slot,
				  .seq = at->seq};
	return copy->check == check_of(copy, at) &&
	       (copy->slot_check == FRAME_OPEN || (copy->slot_check | FRAME_EVENT) == slot_check_of(copy));
}

static bool is_recorded(const struct sl_frame *frame)
{
	return is_event(frame) && frame->slot;
}

/* What a call inside said is kept in the slot of the call it is part of. */
#define HEAD_API_SHIFT	  16
#define HEAD_KIND_SHIFT	  32
#define HEAD_FLAGS_SHIFT  40
#define HEAD_DEVICE_SHIFT 48
#define HEAD_KEPT	  (0xffff0000ull | (uint64_t)(SL_FLAG_nested | SL_FLAG_borrowed) << HEAD_FLAGS_SHIFT)

static uint64_t with_driver_api(uint64_t head, unsigned api)
{
	return (head & ~(uint64_t)0xffff0000) | (uint64_t)api << HEAD_API_SHIFT;
}

static uint64_t with_device(uint64_t head, int device)
{
	return (head & ~((uint64_t)0xffff << HEAD_DEVICE_SHIFT)) | (uint64_t)(uint16_t)device << HEAD_DEVICE_SHIFT;
}

static inline uint64_t head_word(unsigned api, unsigned kind, unsigned flags, int device)
{
	return api | (uint64_t)(kind | flags << (HEAD_FLAGS_SHIFT - HEAD_KIND_SHIFT) |
				(uint32_t)device << (HEAD_DEVICE_SHIFT - HEAD_KIND_SHIFT))
			     << HEAD_KIND_SHIFT;
}

static void finish_slot(struct sl_slot *slot, uint64_t seq)
{
	atomic_store_explicit(&slot->state, SL_SLOT_WORD(seq, SL_SLOT_DONE, true), memory_order_release);
}

/*
 * What a call claims of --limit is in the slot of its event too: the stack of one that is left is the program's again.  Who takes
 * it from there gives it back.
 */
static void keep_claim(struct sl_limit_claim *claim, struct sl_slot *second)
{
	if (!claim->bytes || second->words[6])
		return;
	claim->kept = true;
	second->words[6] = claim->bytes << 8 | (uint8_t)claim->device;
}

static uint64_t take_kept(struct sl_slot *second)
{
	return __atomic_exchange_n(&second->words[6], 0, __ATOMIC_RELAXED);
}

static void release_kept(struct sl_slot *second)
{
	uint64_t kept = take_kept(second);
	struct sl_limit_claim claim = {.bytes = kept >> 8, .device = (uint8_t)kept};

	sl_limit_release(&claim);
}

/* Every call that is open from slot number `seq` to `end` was left: the ring must not wait for it. */
static void abandon(struct sl_thread *thread, uint64_t seq, uint64_t end)
{
	for (; seq < end; seq++) {
		struct sl_slot *slot = sl_ring_find(&sl_agent->ring, thread->ring, seq);

		if (!slot || atomic_load_explicit(&slot->state, memory_order_relaxed) != SL_SLOT_WORD(seq, SL_SLOT_IN_FLIGHT, true))
			continue;
		if (SL_UNLIKELY(sl_limit_active))
			release_kept(sl_ring_find(&sl_agent->ring, thread->ring, seq + 1));
		slot->words[0] |= (uint64_t)SL_FLAG_abandoned << HEAD_FLAGS_SHIFT;
		finish_slot(slot, seq);
	}
}

/*
 * Calls that were left without returning (longjmp, exception, cancellation) lie below the stack pointer or where this one
 * lies, or their frame has been written over.  A handler on an alternate stack is above or below by chance, and truly inside.
 */
static void drop_left_calls(struct sl_thread *thread, const struct sl_frame *now)
{
	struct sl_frame *top = thread->top, frame;

	while (top) {
		if (!copy_whole(&frame, top)) {
			abandon(thread, thread->open_seq, sl_ring_position(thread->ring));
			top = NULL;
			break;
		}
		if ((uintptr_t)top >= (uintptr_t)(now + 1) || ((uintptr_t)(top + 1) <= (uintptr_t)now && on_alternate_stack()))
			break;
		if (frame.slot)
			abandon(thread, frame.seq, frame.seq + 1);
		top = frame.outer;
	}
	thread->top = top;
}

void sl_record_forget(struct sl_thread *thread)
{
	struct sl_frame copy;

	for (struct sl_frame *frame = thread->top; frame && copy_whole(&copy, frame); frame = copy.outer) {
		frame->slot = NULL;
		frame->claim.bytes = 0;
	}
	thread->top = NULL;
}

void sl_record_end(struct sl_thread *thread)
{
	if (thread->top)
		abandon(thread, thread->open_seq, sl_ring_position(thread->ring));
	thread->top = NULL;
}

/* For events without a frame: a call that was left may be the thread's last for long, and would hold up its ring. */
static inline __attribute__((always_inline)) void drop_left_before_event(struct sl_thread *thread)
{
	if (SL_UNLIKELY(thread->top != NULL))
		drop_left_calls(thread, (const struct sl_frame *)__builtin_frame_address(0) - 1);
}

static bool wants_refusal(struct sl_frame *frame, const struct sl_hook *hook, const struct sl_frame *owner)
{
	bool driver = hook->family != SL_FAMILY_cuda_runtime;

	if (hook->verb != SL_VERB_ALLOC || !driver)
		return false;
	return owner ? owner->inject : frame->inject;
}

/* The driver's level alone, and of calls one inside the other the outer, so that nothing counts twice. */
static bool is_counted(const struct sl_hook *hook, const struct sl_frame *owner)
{
	return hook->family != SL_FAMILY_cuda_runtime && (!owner || (hook->family == SL_FAMILY_cuda_driver && !owner->claim.bytes));
}

/*
 * Questions to the driver, the walk of a stack: hooked calls meanwhile are the agent's own, and errno stays the program's.
 * What a call does without them a signal handler's call may interrupt.
 */
static inline __attribute__((always_inline)) int work_begin(void)
{
	sl_agent_begin(&sl_thread);
	return errno;
}

static inline void work_end(int saved)
{
	errno = saved;
	sl_agent_end(&sl_thread);
}

static SL_APART void open_limit(struct sl_frame *frame, const struct sl_hook *hook, const struct sl_frame *owner,
				const struct sl_fields *in)
{
	int device, saved;

	frame->claim = (struct sl_limit_claim){0};
	if (!owner)
		frame->inject = hook->verb == SL_VERB_ALLOC && sl_limit_injects(frame->api, in->kind, in->size);
	frame->refuse = wants_refusal(frame, hook, owner);
	if (frame->refuse || !is_counted(hook, owner))
		return;
	if (hook->verb == SL_VERB_FREE)
		sl_limit_freed(in->kind, in->addr, &frame->claim);
	if (hook->verb != SL_VERB_ALLOC)
		return;
	device = in->device_plus_one - 1;
	saved = work_begin();
	if (!in->device_plus_one && hook->family != SL_FAMILY_hsa)
		device = sl_device_current(hook->family).device;
	frame->refuse = sl_limit_refuses(device, in->kind, in->size, &frame->claim);
	work_end(saved);
}

/* The event that this call is part of; NULL: it is an event of its own. */
static struct sl_frame *owner_of(struct sl_frame *outer, unsigned class)
{
	struct sl_frame *owner = outer && outer->owner ? outer->owner : outer;

	if (SL_LIKELY(!owner) || !is_event(owner))
		return NULL;
	return class == CLASS_CALL || class == outer->class ? owner : NULL;
}

/*
 * Code and contexts take memory that no allocation names: free memory before and after such a call tells how much.  Only
 * where the thread has a context on that device already; these calls are rare.  0: not known.
 */
static SL_APART uint64_t free_around(const struct sl_hook *hook, int device_plus_one)
{
	int saved = work_begin();
	struct sl_where current = sl_device_current(hook->family);
	uint64_t bytes = 0;

	if (current.device >= 0 && current.context && (device_plus_one <= 0 || device_plus_one - 1 == current.device))
		bytes = sl_device_free_bytes(hook->family);
	work_end(saved);
	return bytes;
}

/* The stack of this call as a slot has it, and SL_FLAG_borrowed in *flags: autograd's threads borrow the Python part. */
static SL_APART uint64_t take_stack(unsigned *flags)
{
	int saved = work_begin();
	struct sl_stack_ids stacks = sl_stacks_capture(sl_agent->options.stacks);

	if (!stacks.python && (stacks.python = sl_labels_borrowed_stack()))
		*flags |= SL_FLAG_borrowed;
	work_end(saved);
	return stacks.python | (uint64_t)stacks.native << 32;
}

/* Field by field: this is the path of every call. */
static inline void begin_frame(struct sl_frame *frame, unsigned api, unsigned class, struct sl_frame *outer)
{
	frame->outer = outer;
	frame->owner = owner_of(outer, class);
	frame->check = check_of(frame, frame);
	frame->slot = NULL;
	frame->slot_check = FRAME_OPEN;
	frame->api = (uint16_t)api;
	frame->class = (uint8_t) class;
	frame->inject = frame->refuse = false;
}

/* The call is made inside another one of its class. */
static void open_inside(struct sl_frame *frame)
{
	struct sl_frame *owner = frame->owner;

	if (SL_UNLIKELY(!owner->slot))
		return;
	if (SL_UNLIKELY(sl_limit_active))
		keep_claim(&frame->claim, owner->second);
	owner->slot->words[0] = with_driver_api(owner->slot->words[0], frame->api);
}

SL_HOT bool sl_record_open(struct sl_frame *frame, unsigned api, const void *caller, const struct sl_fields *in)
{
	unsigned row = in->api ? in->api : api, flags = in->flags;
	const struct traits trait = traits[sl_hooks[row].verb];
	struct sl_thread *thread = &sl_thread;
	uint64_t seq, stacks = 0, label;
	struct sl_slot *slot, *second;
	struct sl_producer *ring;
	struct sl_agent *agent;

	/* By the wrapper's frame: to ask for our own address would cost a register. */
	if (SL_UNLIKELY(thread->inside && sl_record_inside_at((uintptr_t)frame)) || SL_UNLIKELY(!sl_agent_attached()))
		return false;
	agent = sl_agent;
	/* A call that was left may have had its frame at the same place. */
	if (SL_UNLIKELY(thread->top != NULL))
		drop_left_calls(thread, frame);
	begin_frame(frame, row, trait.class, thread->top);
	atomic_signal_fence(memory_order_release); /* a handler's call looks at all of it */
	thread->top = frame;
	if (SL_UNLIKELY(sl_limit_active))
		open_limit(frame, &sl_hooks[row], frame->owner, in);
	if (frame->owner) {
		open_inside(frame);
		return true;
	}
	if (frame->outer)
		flags |= SL_FLAG_nested;
	if (trait.stack && agent->options.stacks)
		stacks = take_stack(&flags);
	if (SL_UNLIKELY(trait.loads))
		frame->free_bytes = free_around(&sl_hooks[row], in->device_plus_one);
	label = (uint64_t)sl_labels_current() << 32;
	ring = thread->ring;
	do {
		slot = sl_ring_reserve(ring, 2, &seq);
		frame->seq = seq;
		frame->slot = slot;
		if (SL_UNLIKELY(!slot)) {
			frame->slot_check = slot_check_of(frame);
			return true;
		}
		frame->second = second = sl_ring_slot(ring, seq + 1);
		if (!frame->outer)
			thread->open_seq = seq;
		frame->begin_ns = sl_clock_before(&agent->clock);

		uint64_t *w = slot->words;

		w[0] = head_word(row, in->kind, flags, in->device_plus_one > 0 ? in->device_plus_one - 1 : -1);
		w[1] = frame->begin_ns;
		w[2] = 0;
		w[3] = in->addr;
		w[4] = in->size;
		w[5] = stacks;
		w[6] = label;
		w = second->words;
		w[0] = in->stream;
		w[1] = in->context;
		w[2] = in->object;
		w[3] = in->extra;
		w[4] = in->extra2;
		w[5] = (uintptr_t)caller;
		if (SL_UNLIKELY(sl_limit_active)) {
			w[6] = 0;
			keep_claim(&frame->claim, second);
		}
	} while (SL_UNLIKELY(!sl_ring_publish(ring, slot, seq, SL_SLOT_IN_FLIGHT, true)));
	frame->slot_check = slot_check_of(frame);
	return true;
}

/* Of a verb with a place: device and context are asked of the driver.  HIP, which says it, may not be there where HSA is. */
static bool is_asked(const struct sl_hook *hook)
{
	return (hook->verb != SL_VERB_MAP || hook->kind == SL_KIND_imported) && hook->family != SL_FAMILY_hsa;
}

/* Where it is not known, the thread's device and context are the call's.  used: there is memory on the device from now on. */
static SL_APART struct sl_where ask_place(enum sl_family family, struct sl_where place, bool used)
{
	int saved = work_begin();

	if (place.device < 0 || !place.context) {
		struct sl_where current = sl_device_current(family);

		if (place.device < 0)
			place.device = current.device;
		if (!place.context && place.device == current.device)
			place.context = current.context;
	}
	if (used)
		sl_device_used(place.device, family);
	work_end(saved);
	return place;
}

static SL_APART int device_of_pointer(enum sl_family family, uint64_t address)
{
	int saved = work_begin(), device = sl_device_of_pointer(family, address);

	work_end(saved);
	return device;
}

/* Device and context: of the row, of the driver call inside, else asked of the driver after the call. */
static inline __attribute__((always_inline)) struct sl_where place_of(const struct sl_frame *frame, const struct sl_hook *hook,
								      const struct sl_fields *out, bool ok)
{
	struct sl_where place = {.device = out->device_plus_one - 1, .context = out->context};
	const struct traits trait = traits[hook->verb];
	bool on_host = sl_event_kinds[out->kind].on_host & (trait.class == CLASS_MEMORY);

	if (frame->slot && !out->device_plus_one)
		place.device = (int16_t)(frame->slot->words[0] >> HEAD_DEVICE_SHIFT);
	if (frame->slot && !out->context)
		place.context = frame->second->words[1];
	if (SL_UNLIKELY(out->kind == SL_KIND_pool) && place.device < 0 && ok && hook->verb == SL_VERB_ALLOC)
		place.device = device_of_pointer(hook->family, out->addr);
	on_host |= place.device == SL_NO_DEVICE - 1;
	if (trait.place && is_asked(hook))
		place = ask_place(hook->family, place, ok && !on_host);
	if (on_host || place.device < 0)
		place.device = -1;
	return place;
}

static inline void limit_result(struct sl_frame *frame, const struct sl_hook *hook, const struct sl_fields *out, bool ok)
{
	struct sl_slot *second = frame->slot ? frame->second : is_recorded(frame->owner) ? frame->owner->second : NULL;
	bool placed = ok && (hook->verb == SL_VERB_ALLOC || hook->verb == SL_VERB_DEVICE_RESET);
	int device = placed ? place_of(frame, hook, out, ok).device : -1; /* asked while the claim is in the slot still */

	if (!frame->claim.kept && frame->slot)
		release_kept(frame->second); /* of a call inside that was left */
	else if (frame->claim.kept && second && !take_kept(second))
		frame->claim.bytes = 0; /* it was taken for left */
	if (!is_counted(hook, frame->owner))
		return;
	if (ok && hook->verb == SL_VERB_ALLOC) {
		sl_limit_allocated(device, out->kind, out->addr, out->size, &frame->claim);
	} else if (!ok && hook->verb == SL_VERB_FREE && frame->claim.bytes) {
		sl_limit_allocated(frame->claim.device, out->kind, out->addr, frame->claim.bytes, &frame->claim);
	} else {
		sl_limit_release(&frame->claim);
	}
	if (ok && hook->verb == SL_VERB_DEVICE_RESET)
		sl_limit_context_gone(device);
}

static SL_APART void close_limit(struct sl_frame *frame, const struct sl_hook *hook, const struct sl_fields *out, bool ok)
{
	int saved = work_begin();

	limit_result(frame, hook, out, ok);
	work_end(saved);
}

/* What one call did to further objects, at the time of the call. */
static void record_more(const struct sl_frame *frame, const struct sl_hook *hook, const struct sl_fields *out)
{
	struct sl_producer *ring = sl_thread.ring;

	for (uint64_t i = 1; i < out->extra; i++) {
		struct sl_slot *slot, *second;
		uint64_t seq;

		do {
			slot = sl_ring_reserve(ring, 2, &seq);
			if (SL_UNLIKELY(!slot))
				return;
			second = sl_ring_slot(ring, seq + 1);
			memset(slot->words, 0, sizeof(slot->words));
			memset(second->words, 0, sizeof(second->words));
			slot->words[0] = head_word((unsigned)(hook + 1 - sl_hooks), hook[1].kind, 0, -1);
			slot->words[1] = frame->begin_ns;
			second->words[2] = (uintptr_t)out->more[i];
			second->words[5] = frame->second->words[5];
		} while (SL_UNLIKELY(!sl_ring_publish(ring, slot, seq, SL_SLOT_DONE, true)));
	}
}

static void add_flags(struct sl_slot *slot, unsigned flags)
{
	slot->words[0] |= (uint64_t)flags << HEAD_FLAGS_SHIFT;
}

/* What a row cannot say and only some calls have: asked of the driver. */
static SL_APART void ask_more(struct sl_frame *frame, const struct sl_hook *hook, const struct sl_fields *out)
{
	bool memory = hook->verb == SL_VERB_ALLOC || hook->verb == SL_VERB_FREE;
	uint64_t *head = &frame->slot->words[0], graph;
	int saved = work_begin();

	if (out->kind == SL_KIND_imported && (hook->verb == SL_VERB_ALLOC || hook->verb == SL_VERB_MAP) && !out->size &&
	    hook->family != SL_FAMILY_hsa)
		frame->slot->words[4] = sl_device_size_of(hook->family, out->addr);
	if (out->stream && memory && sl_device_capturing(hook->family, out->stream, &graph)) {
		add_flags(frame->slot, SL_FLAG_captured);
		frame->second->words[2] = graph;
		if (out->kind == SL_KIND_pool)
			*head ^= (uint64_t)(SL_KIND_pool ^ SL_KIND_graph) << HEAD_KIND_SHIFT;
	}
	work_end(saved);
}

/* Of a call that had no need of one until it failed, or of a free where that is wanted. */
static SL_APART void take_late_stack(struct sl_slot *slot)
{
	unsigned flags = 0;

	if (!slot->words[5])
		slot->words[5] = take_stack(&flags);
	add_flags(slot, flags);
}

static SL_APART void close_failed(struct sl_frame *frame, const struct sl_hook *hook, int64_t result, uint64_t end_ns,
				  const struct sl_fields *out, bool injected)
{
	take_late_stack(frame->slot);
	if (frame->refuse || frame->inject || injected)
		add_flags(frame->slot, SL_FLAG_injected);
	if (result && result == sl_event_families[hook->family].oom) {
		int device = (int16_t)(frame->slot->words[0] >> HEAD_DEVICE_SHIFT), saved = work_begin();

		sl_device_oom(sl_thread.ring->thread, frame->seq, device, hook->family, out->kind, end_ns);
		work_end(saved);
	}
}

/* The ring may be lost with the node: the writer is woken to bring home what led to this. */
static SL_APART void tell_writer(struct sl_agent *agent)
{
	int saved = errno;

	atomic_store(&agent->urgent, 1);
	atomic_fetch_add(&agent->wake, 1);
	sl_agent_wake(&agent->wake);
	errno = saved;
}

static SL_APART void close_late(void)
{
	int saved = work_begin();

	sl_preload_late();
	work_end(saved);
}

static inline void close_slot(struct sl_agent *agent, struct sl_frame *frame, unsigned row, int64_t result, bool ok,
			      const struct sl_fields *out)
{
	const struct sl_hook *hook = &sl_hooks[row];
	/* Of what took effect before the call the end only says how long that took. */
	uint64_t end_ns = sl_clock_stamp(&agent->clock, !sl_event_verbs[hook->verb].stamped_before);
	struct sl_where place = place_of(frame, hook, out, ok);
	uint64_t *w = frame->slot->words, *w2 = frame->second->words, head = w[0];
	bool late;

	w[0] = (head & HEAD_KEPT) | head_word(row, out->kind, out->flags, place.device);
	w[2] = end_ns > frame->begin_ns ? end_ns - frame->begin_ns : 0;
	w[3] = out->addr;
	w[4] = out->size;
	w[6] |= (uint32_t)result;
	w2[0] = out->stream;
	w2[1] = place.context;
	w2[2] = out->object;
	w2[3] = out->extra;
	w2[4] = out->extra2;
	if (SL_UNLIKELY(!ok))
		close_failed(frame, hook, result, end_ns, out, head >> HEAD_FLAGS_SHIFT & SL_FLAG_injected);
	else if (SL_UNLIKELY(out->stream || out->kind == SL_KIND_imported))
		ask_more(frame, hook, out);
	if (SL_UNLIKELY(agent->options.free_stacks) && hook->verb == SL_VERB_FREE)
		take_late_stack(frame->slot);
	if (SL_UNLIKELY(traits[hook->verb].loads) && frame->free_bytes) {
		w2[3] = frame->free_bytes;
		w2[4] = ok ? free_around(hook, place.device + 1) : 0;
	}
	if (SL_UNLIKELY(out->more != NULL) && ok)
		record_more(frame, hook, out);
	late = atomic_load_explicit(&agent->phase, memory_order_relaxed) == SL_PHASE_LATE;
	if (SL_UNLIKELY(late))
		add_flags(frame->slot, SL_FLAG_late);
	finish_slot(frame->slot, frame->seq);
	if (SL_UNLIKELY(!ok) && agent->store.ring_elsewhere)
		tell_writer(agent);
	if (SL_UNLIKELY(late))
		close_late();
}

/* A driver call inside a runtime call knows what the runtime's prototype does not say. */
static void tell_owner(const struct sl_frame *owner, const struct sl_frame *frame, const struct sl_fields *out)
{
	uint64_t *head = &owner->slot->words[0];

	if (frame->refuse)
		*head |= (uint64_t)SL_FLAG_injected << HEAD_FLAGS_SHIFT;
	if (frame->class != owner->class)
		return;
	/* HIP knows best which of its devices it is on, and its managed memory lies in pools of the host */
	if (out->device_plus_one && sl_hooks[frame->api].family != SL_FAMILY_hsa)
		*head = with_device(*head, out->device_plus_one - 1);
	if (out->context)
		owner->second->words[1] = out->context;
}

SL_HOT void sl_record_close(struct sl_frame *frame, int64_t result, bool ok, const struct sl_fields *out)
{
	unsigned row = out->api ? out->api : frame->api;
	struct sl_thread *thread = &sl_thread;
	struct sl_agent *agent = sl_agent;

	frame->slot_check &= ~(uintptr_t)FRAME_EVENT; /* the call has returned: what a signal handler calls now is not part of it */
	atomic_signal_fence(memory_order_seq_cst);
	/* A child forked inside the call has another recording, or none. */
	if (SL_LIKELY(thread->generation == atomic_load_explicit(&agent->generation, memory_order_relaxed))) {
		if (SL_UNLIKELY(sl_limit_active))
			close_limit(frame, &sl_hooks[row], out, ok);
		if (frame->owner && is_recorded(frame->owner))
			tell_owner(frame->owner, frame, out);
		if (SL_LIKELY(frame->slot != NULL))
			close_slot(agent, frame, row, result, ok, out);
	}
	/* Last, so that a call whose closing is left by a signal handler is found among the open ones. */
	thread->top = frame->outer;
	frame->check = 0;
}

/* The second slot of a block event. */
static void put_asked(struct sl_slot *second, const struct sl_asked *asked)
{
	memset(second->words, 0, sizeof(second->words));
	second->words[0] = asked->stream;
	second->words[2] = asked->object;
}

void sl_record_block(unsigned api, uint64_t addr, uint64_t size, int device, uint64_t allocated, uint64_t reserved,
		     const struct sl_asked *asked)
{
	struct sl_thread *thread = &sl_thread;
	struct sl_slot *slot;
	uint64_t seq;
	uint32_t python, label;
	unsigned flags = 0;
	int saved = errno;

	if (sl_record_inside() || !sl_agent_attached())
		return;
	drop_left_before_event(thread);
	sl_agent_begin(thread);
	python = sl_stacks_capture(sl_agent->options.stacks & SL_STACKS_PYTHON).python;
	if (!python && (python = sl_labels_borrowed_stack()))
		flags |= SL_FLAG_borrowed;
	label = sl_labels_current();
	do {
		slot = sl_ring_reserve(thread->ring, asked ? 2 : 1, &seq);
		if (SL_UNLIKELY(!slot))
			break;
		if (asked)
			put_asked(slot + 1, asked);
		slot->words[0] = head_word(api, SL_KIND_block, flags, device);
		slot->words[1] = sl_clock_after(&sl_agent->clock);
		slot->words[2] = allocated;
		slot->words[3] = addr;
		slot->words[4] = size;
		slot->words[5] = reserved;
		slot->words[6] = label | (uint64_t)python << 32;
	} while (SL_UNLIKELY(!sl_ring_publish(thread->ring, slot, seq, SL_SLOT_DONE, asked)));
	sl_agent_end(thread);
	errno = saved;
}

void sl_record_range(unsigned api, uint32_t label, uint64_t extra, struct sl_collective collective)
{
	struct sl_thread *thread = &sl_thread;
	struct sl_slot *slot;
	uint64_t seq;

	if (sl_record_inside() || !sl_agent_attached())
		return;
	drop_left_before_event(thread);
	do {
		slot = sl_ring_reserve(thread->ring, 1, &seq);
		if (SL_UNLIKELY(!slot))
			return;
		slot->words[0] = head_word(api, SL_KIND_none, 0, -1);
		slot->words[1] = sl_clock_after(&sl_agent->clock);
		slot->words[2] = extra;
		slot->words[3] = collective.communicator;
		slot->words[4] = collective.bytes;
		slot->words[5] = 0;
		slot->words[6] = label;
	} while (SL_UNLIKELY(!sl_ring_publish(thread->ring, slot, seq, SL_SLOT_DONE, false)));
}
