/* SPDX-License-Identifier: MIT */
#include "agent/record.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/device.h"
#include "agent/hooks.h"
#include "agent/labels.h"
#include "agent/limit.h"
#include "agent/preload.h"
#include "agent/stacks/stacks.h"

#define FRAME_CHECK 0x5354524d4c4f4721ull
#define REFUSED_MAX 16

__thread struct sl_thread sl_thread;

/* Calls of one class, one inside the other, are one event. */
enum class { CLASS_CALL, CLASS_MEMORY, CLASS_POOL, CLASS_CONTEXT, CLASS_MODULE, CLASS_LIMIT, CLASS_GRAPH };

static const struct {
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

static uintptr_t check_of(const struct sl_frame *frame)
{
	return (uintptr_t)frame ^ (uintptr_t)frame->outer >> 1 ^ (uintptr_t)frame->owner << 1 ^ (uintptr_t)FRAME_CHECK;
}

static uintptr_t slot_check_of(const struct sl_frame *frame)
{
	return (uintptr_t)frame->slot ^ frame->seq << 1 ^ (uintptr_t)FRAME_CHECK;
}

/* It is a call under way that is an event of its own, in the ring or, where that had no room, counted as lost. */
static bool is_event(const struct sl_frame *frame)
{
	return frame && frame->check == check_of(frame) && frame->slot_check == slot_check_of(frame);
}

static bool is_recorded(const struct sl_frame *frame)
{
	return is_event(frame) && frame->slot;
}

/* What a call inside said is kept in the slot of the call it is part of. */
#define HEAD_API_SHIFT	  16
#define HEAD_FLAGS_SHIFT  40
#define HEAD_DEVICE_SHIFT 48

static uint64_t with_driver_api(uint64_t head, unsigned api)
{
	return (head & ~(uint64_t)0xffff0000) | (uint64_t)api << HEAD_API_SHIFT;
}

static uint64_t with_device(uint64_t head, int device)
{
	return (head & ~((uint64_t)0xffff << HEAD_DEVICE_SHIFT)) | (uint64_t)(uint16_t)device << HEAD_DEVICE_SHIFT;
}

static inline uint64_t head_word(uint16_t api, uint16_t driver_api, uint8_t kind, uint8_t flags, int16_t device)
{
	return api | (uint32_t)driver_api << HEAD_API_SHIFT |
	       (uint64_t)(kind | (uint32_t)flags << (HEAD_FLAGS_SHIFT - 32) | (uint32_t)device << (HEAD_DEVICE_SHIFT - 32)) << 32;
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
	struct sl_frame *top = thread->top;

	while (top && top->check == check_of(top)) {
		if ((uintptr_t)top >= (uintptr_t)(now + 1) || ((uintptr_t)(top + 1) <= (uintptr_t)now && on_alternate_stack()))
			break;
		if (top->slot)
			abandon(thread, top->seq, top->seq + 1);
		top = top->outer;
	}
	if (top && top->check != check_of(top)) {
		/* What it says of outer calls cannot be trusted either. */
		abandon(thread, thread->open_seq, thread->ring->next);
		top = NULL;
	}
	thread->top = top;
}

void sl_record_end(struct sl_thread *thread)
{
	if (thread->top)
		abandon(thread, thread->open_seq, thread->ring->next);
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

static void open_limit(struct sl_frame *frame, const struct sl_hook *hook, const struct sl_frame *owner,
	const struct sl_fields *in)
{
	int device = -1;
	uint64_t context = 0;

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
	if (!in->device_plus_one && hook->family != SL_FAMILY_hsa)
		sl_device_current(hook->family, &device, &context);
	frame->refuse = sl_limit_refuses(device, in->kind, in->size, &frame->claim);
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
static uint64_t free_around(const struct sl_hook *hook, int device_plus_one)
{
	uint64_t context = 0, bytes = 0;
	int current = -1, saved = errno;

	sl_device_current(hook->family, &current, &context);
	if (current >= 0 && context && (device_plus_one <= 0 || device_plus_one - 1 == current))
		bytes = sl_device_free_bytes(hook->family);
	errno = saved;
	return bytes;
}

/* The stack of this call; autograd's threads borrow the Python part. */
static void take_stack(struct sl_frame *frame)
{
	int saved = errno;
	struct sl_stack_ids stacks = sl_stacks_capture(sl_agent->options.stacks);

	frame->native = stacks.native;
	frame->python = stacks.python;
	if (!frame->python) {
		frame->python = sl_labels_borrowed_stack();
		frame->borrowed = frame->python != 0;
	}
	errno = saved;
}

/* Field by field: what is written a moment later need not be cleared, and this is the path of every call. */
static void begin_frame(struct sl_frame *frame, const struct sl_hook *hook, struct sl_frame *outer)
{
	frame->outer = outer;
	frame->api = (uint16_t)(hook - sl_hooks);
	frame->class = traits[hook->verb].class;
	frame->owner = owner_of(outer, frame->class);
	frame->check = check_of(frame);
	frame->slot = NULL;
	frame->slot_check = 0;
	frame->inject = frame->refuse = frame->borrowed = false;
	frame->claim = (struct sl_limit_claim){0};
	frame->python = frame->native = 0;
	frame->free_bytes = 0;
}

SL_HOT bool sl_record_open(struct sl_frame *frame, unsigned api, const void *caller, const struct sl_fields *in)
{
	const struct sl_hook *hook = &sl_hooks[in->api ? in->api : api];
	struct sl_thread *thread = &sl_thread;
	unsigned flags = in->flags;
	struct sl_agent *agent;
	uint32_t label;

	if (SL_UNLIKELY(sl_record_inside() || !sl_agent_attached()))
		return false;
	agent = sl_agent;
	/* A call that was left may have had its frame at the same place. */
	if (SL_UNLIKELY(thread->top != NULL))
		drop_left_calls(thread, frame);
	begin_frame(frame, hook, thread->top);
	atomic_signal_fence(memory_order_release); /* a handler's call looks at all of it */
	thread->top = frame;
	if (SL_UNLIKELY(sl_limit_active))
		open_limit(frame, hook, frame->owner, in);
	if (frame->owner) {
		if (SL_LIKELY(frame->owner->slot != NULL)) {
			keep_claim(&frame->claim, frame->owner->second);
			frame->owner->slot->words[0] = with_driver_api(frame->owner->slot->words[0], frame->api);
		}
		return true;
	}
	if (frame->outer)
		flags |= SL_FLAG_nested;
	if ((traits[hook->verb].stack && agent->options.stacks) || SL_UNLIKELY(traits[hook->verb].loads)) {
		sl_agent_begin(thread);
		take_stack(frame);
		if (SL_UNLIKELY(traits[hook->verb].loads))
			frame->free_bytes = free_around(hook, in->device_plus_one);
		sl_agent_end(thread);
		if (frame->borrowed)
			flags |= SL_FLAG_borrowed;
	}
	label = sl_labels_current();
	do {
		struct sl_slot *slot = sl_ring_reserve(thread->ring, 2, &frame->seq);

		frame->slot = slot;
		if (SL_UNLIKELY(!slot)) {
			frame->slot_check = slot_check_of(frame);
			return true;
		}
		frame->second = sl_ring_slot(thread->ring, frame->seq + 1);
		if (!frame->outer)
			thread->open_seq = frame->seq;
		frame->begin_ns = sl_clock_before(&agent->clock);

		uint64_t *w = slot->words;

		w[0] = head_word(frame->api, 0, in->kind, flags, in->device_plus_one > 0 ? in->device_plus_one - 1 : -1);
		w[1] = frame->begin_ns;
		w[2] = 0;
		w[3] = in->addr;
		w[4] = in->size;
		w[5] = frame->python | (uint64_t)frame->native << 32;
		w[6] = (uint64_t)label << 32;
		w = frame->second->words;
		w[0] = in->stream;
		w[1] = in->context;
		w[2] = in->object;
		w[3] = in->extra;
		w[4] = in->extra2;
		w[5] = (uintptr_t)caller;
		if (SL_UNLIKELY(sl_limit_active)) {
			w[6] = 0;
			keep_claim(&frame->claim, frame->second);
		}
	} while (SL_UNLIKELY(!sl_ring_publish(thread->ring, frame->slot, frame->seq, SL_SLOT_IN_FLIGHT, true)));
	frame->slot_check = slot_check_of(frame);
	return true;
}

/* What an event says beside the row's fields. */
struct facts {
	enum sl_kind kind;
	unsigned flags;
	int device; /* -1 unknown */
	uint64_t context, bytes, object;
};

/* The row is one whose device and context are asked of the driver. */
static bool has_place(const struct sl_hook *hook)
{
	return traits[hook->verb].place && (hook->verb != SL_VERB_MAP || hook->kind == SL_KIND_imported);
}

/* Device and context: of the row, of the driver call inside, else asked of the driver after the call. */
static inline __attribute__((always_inline)) void place(const struct sl_frame *frame, const struct sl_hook *hook,
	const struct sl_fields *out, bool ok, struct facts *facts)
{
	int device = out->device_plus_one || !frame->slot ? out->device_plus_one - 1
							  : (int16_t)(frame->slot->words[0] >> HEAD_DEVICE_SHIFT);
	uint64_t context = out->context || !frame->slot ? out->context : frame->second->words[1];
	bool asked = has_place(hook) && hook->family != SL_FAMILY_hsa, on_host; /* HIP may not be there */

	if (SL_UNLIKELY(out->kind == SL_KIND_pool) && device < 0 && ok && hook->verb == SL_VERB_ALLOC)
		device = sl_device_of_pointer(hook->family, out->addr);
	on_host = device == SL_NO_DEVICE - 1 || (sl_event_kinds[out->kind].on_host && traits[hook->verb].class == CLASS_MEMORY);
	if (asked && (device < 0 || !context)) {
		uint64_t current_context;
		int current;

		sl_device_current(hook->family, &current, &current_context);
		if (device < 0)
			device = current;
		if (!context && device == current)
			context = current_context;
	}
	facts->device = on_host || device < 0 ? -1 : device;
	facts->context = context;
	if (asked && facts->device >= 0 && ok)
		sl_device_used(facts->device, hook->family);
}

static inline void find_out(const struct sl_frame *frame, const struct sl_hook *hook, const struct sl_fields *out,
	bool ok, struct facts *facts)
{
	uint64_t graph;

	*facts = (struct facts){.kind = out->kind, .flags = out->flags, .bytes = out->size, .object = out->object};
	place(frame, hook, out, ok, facts);
	if (frame->outer)
		facts->flags |= SL_FLAG_nested;
	if (!ok)
		return;
	if (out->kind == SL_KIND_imported && (hook->verb == SL_VERB_ALLOC || hook->verb == SL_VERB_MAP) && !out->size &&
		hook->family != SL_FAMILY_hsa)
		facts->bytes = sl_device_size_of(hook->family, out->addr);
	if (SL_UNLIKELY(out->stream != 0) && (hook->verb == SL_VERB_ALLOC || hook->verb == SL_VERB_FREE) &&
		sl_device_capturing(hook->family, out->stream, &graph)) {
		facts->flags |= SL_FLAG_captured;
		facts->object = graph;
		if (out->kind == SL_KIND_pool)
			facts->kind = SL_KIND_graph;
	}
}

static __attribute__((noinline)) void limit_result(struct sl_frame *frame, const struct sl_hook *hook,
	const struct sl_fields *out, bool ok)
{
	struct sl_slot *second = frame->slot ? frame->second : is_recorded(frame->owner) ? frame->owner->second : NULL;
	struct facts facts;

	if (!frame->claim.kept && frame->slot)
		release_kept(frame->second); /* of a call inside that was left */
	else if (frame->claim.kept && second && !take_kept(second))
		frame->claim.bytes = 0; /* it was taken for left */
	if (!is_counted(hook, frame->owner))
		return;
	if (ok && hook->verb == SL_VERB_ALLOC) {
		place(frame, hook, out, ok, &facts);
		sl_limit_allocated(facts.device, out->kind, out->addr, out->size, &frame->claim);
	} else if (!ok && hook->verb == SL_VERB_FREE && frame->claim.bytes) {
		sl_limit_allocated(frame->claim.device, out->kind, out->addr, frame->claim.bytes, &frame->claim);
	} else {
		sl_limit_release(&frame->claim);
	}
	if (!ok)
		return;
	if (hook->verb == SL_VERB_DEVICE_RESET) {
		place(frame, hook, out, ok, &facts);
		sl_limit_context_gone(facts.device);
	}
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
			slot->words[0] = head_word((unsigned)(hook + 1 - sl_hooks), 0, hook[1].kind, 0, -1);
			slot->words[1] = frame->begin_ns;
			second->words[2] = (uintptr_t)out->more[i];
			second->words[5] = frame->second->words[5];
		} while (SL_UNLIKELY(!sl_ring_publish(ring, slot, seq, SL_SLOT_DONE, true)));
	}
}

/* Of a call that had no need of one until it failed, or of a free where that is wanted. */
static __attribute__((noinline)) void take_late_stack(struct sl_frame *frame)
{
	if (frame->native || frame->python)
		return;
	take_stack(frame);
	frame->slot->words[5] = frame->python | (uint64_t)frame->native << 32;
}

static inline void close_slot(struct sl_agent *agent, struct sl_frame *frame, const struct sl_hook *hook, int64_t result,
	bool ok, const struct sl_fields *out)
{
	uint64_t end_ns = sl_clock_after(&agent->clock);
	uint64_t *w = frame->slot->words, *w2 = frame->second->words;
	struct facts facts;

	find_out(frame, hook, out, ok, &facts);
	if (SL_UNLIKELY(!ok) || (SL_UNLIKELY(agent->options.free_stacks) && hook->verb == SL_VERB_FREE))
		take_late_stack(frame);
	if (frame->borrowed)
		facts.flags |= SL_FLAG_borrowed;
	if (SL_UNLIKELY(atomic_load_explicit(&agent->phase, memory_order_relaxed) == SL_PHASE_LATE))
		facts.flags |= SL_FLAG_late;
	if (SL_UNLIKELY(!ok) && (frame->refuse || frame->inject || w[0] >> HEAD_FLAGS_SHIFT & SL_FLAG_injected))
		facts.flags |= SL_FLAG_injected;
	w[0] = head_word((unsigned)(hook - sl_hooks), (w[0] >> HEAD_API_SHIFT) & 0xffff, facts.kind, facts.flags, facts.device);
	w[2] = end_ns - frame->begin_ns;
	w[3] = out->addr;
	w[4] = facts.bytes;
	w[6] = (uint32_t)result | (w[6] & ~(uint64_t)UINT32_MAX);
	w2[0] = out->stream;
	w2[1] = facts.context;
	w2[2] = facts.object;
	w2[3] = out->extra;
	w2[4] = out->extra2;
	if (SL_UNLIKELY(frame->free_bytes != 0)) {
		w2[3] = frame->free_bytes;
		w2[4] = ok ? free_around(hook, facts.device + 1) : 0;
	}
	if (SL_UNLIKELY(!ok) && (out->oom || (result && result == sl_event_families[hook->family].oom)))
		sl_device_oom(sl_thread.ring->thread, frame->seq, facts.device, hook->family, facts.kind, end_ns);
	if (SL_UNLIKELY(out->more != NULL) && ok)
		record_more(frame, hook, out);
	finish_slot(frame->slot, frame->seq);
	if (SL_UNLIKELY(!ok) && agent->store.ring_elsewhere) {
		atomic_store(&agent->urgent, 1);
		atomic_fetch_add(&agent->wake, 1);
		sl_agent_wake(&agent->wake);
	}
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
	const struct sl_hook *hook = &sl_hooks[out->api ? out->api : frame->api];
	struct sl_thread *thread = &sl_thread;
	struct sl_agent *agent = sl_agent;
	int saved = errno;
	bool ours;

	/* A child forked inside the call has another recording, or none. */
	ours = thread->generation == atomic_load_explicit(&agent->generation, memory_order_relaxed);
	sl_agent_begin(thread);
	if (SL_UNLIKELY(sl_limit_active) && ours)
		limit_result(frame, hook, out, ok);
	if (SL_UNLIKELY(frame->owner != NULL) && ours && is_recorded(frame->owner))
		tell_owner(frame->owner, frame, out);
	if (SL_LIKELY(ours && frame->slot)) {
		close_slot(agent, frame, hook, result, ok, out);
		if (SL_UNLIKELY(atomic_load_explicit(&agent->phase, memory_order_relaxed) == SL_PHASE_LATE))
			sl_preload_late();
	}
	/* Last, so that a call whose closing is left by a signal handler is found among the open ones. */
	thread->top = frame->outer;
	frame->check = 0;
	sl_agent_end(thread);
	errno = saved;
}

void sl_record_block(unsigned api, uint64_t addr, uint64_t size, int device, uint64_t allocated, uint64_t reserved)
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
		slot = sl_ring_reserve(thread->ring, 1, &seq);
		if (SL_UNLIKELY(!slot))
			break;
		slot->words[0] = head_word(api, 0, SL_KIND_block, flags, device);
		slot->words[1] = sl_clock_after(&sl_agent->clock);
		slot->words[2] = allocated;
		slot->words[3] = addr;
		slot->words[4] = size;
		slot->words[5] = reserved;
		slot->words[6] = label | (uint64_t)python << 32;
	} while (SL_UNLIKELY(!sl_ring_publish(thread->ring, slot, seq, SL_SLOT_DONE, false)));
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
		slot->words[0] = head_word(api, 0, SL_KIND_none, 0, -1);
		slot->words[1] = sl_clock_after(&sl_agent->clock);
		slot->words[2] = extra;
		slot->words[3] = collective.communicator;
		slot->words[4] = collective.bytes;
		slot->words[5] = 0;
		slot->words[6] = label;
	} while (SL_UNLIKELY(!sl_ring_publish(thread->ring, slot, seq, SL_SLOT_DONE, false)));
}
