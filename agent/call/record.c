/* SPDX-License-Identifier: MIT */
/* Longer than other files: the way of every call, from open to close. */
#include "agent/call/call.h"
#include "agent/file/file.h"
#include "agent/stacks/stacks.h"

static const struct traits {
	uint8_t class : 5;
	bool stack : 1; /* taken before the call, so that a call in flight has it */
	bool place : 1; /* device and context are asked after the call */
	bool loads : 1; /* loads code or makes a context: takes memory that no allocation names */
	bool ends : 1;	/* ends a context or unloads code, whose handles may be used again */
} traits[SL_VERB_COUNT] = {
#define CLASS(verb, name) [SL_VERB_##verb].class = SL_CLASS_##name,
#define STACK(verb)	  [SL_VERB_##verb].stack = true,
#include "agent/call/classes.def"
#undef CLASS
#undef STACK
	[SL_VERB_ALLOC].place = true,
	[SL_VERB_MAP].place = true, /* asked for imported memory alone (is_asked) */
	[SL_VERB_POOL_CREATE].place = true,
	[SL_VERB_PRIMARY_RETAIN].place = true, /* a worker that does no more holds its context, which samples show */
	[SL_VERB_CONTEXT_CREATE].place = true,
	[SL_VERB_CONTEXT_CREATE].loads = true,
	[SL_VERB_CONTEXT_DESTROY].ends = true,
	[SL_VERB_PRIMARY_RELEASE].ends = true,
	[SL_VERB_DEVICE_RESET].place = true,
	[SL_VERB_DEVICE_RESET].ends = true,
	[SL_VERB_MODULE_UNLOAD].ends = true,
	[SL_VERB_MODULE_LOAD].place = true,
	[SL_VERB_MODULE_LOAD].loads = true,
	[SL_VERB_CODE_LOAD].place = true,
	[SL_VERB_CODE_LOAD].loads = true,
	[SL_VERB_LIMIT].place = true,
	[SL_VERB_GRAPH_ALLOC].place = true,
	[SL_VERB_GRAPH_INSTANTIATE].place = true,
	[SL_VERB_GRAPH_TRIM].place = true,
	[SL_VERB_STREAM_CREATE].place = true,
	[SL_VERB_EXTERNAL_IMPORT].place = true,
	[SL_VERB_EVENT_CREATE].place = true,
};

/* The event that this call is part of; NULL: it is an event of its own, as a signal handler's is in the midst of a call. */
static struct sl_frame *owner_of(struct sl_frame *outer, unsigned class, const void *caller)
{
	struct sl_frame *owner = outer && outer->owner ? outer->owner : outer;

	if (SL_LIKELY(!owner) || !sl_unwound_is_event(owner))
		return NULL;
	return (class == SL_CLASS_CALL || class == outer->class) && sl_stacks_inside(owner, caller) ? owner : NULL;
}

/*
 * Work around rare questions to the driver, which may hold a lock of its own meanwhile: a handler of the program that left such a
 * question by longjmp would have left no call that the program made.
 */
struct quiet {
	struct sl_mute mute;
	int saved;
};

static inline __attribute__((always_inline)) struct quiet quiet_begin(void)
{
	int saved = sl_agent_work_begin();

	return (struct quiet){sl_mute_begin(), saved};
}

static inline void quiet_end(const struct quiet *quiet)
{
	sl_mute_end(&quiet->mute);
	sl_agent_work_end(quiet->saved);
}

/*
 * Code and contexts take memory that no allocation names: free memory before and after such a call tells how much.  Only
 * where the thread has a context on that device already; calls for code that is known do not come here.  0: not known.
 */
static SL_NOINLINE uint64_t free_around(const struct sl_hooks_row *hook, int device_plus_one)
{
	const struct quiet quiet = quiet_begin();
	struct sl_vendor_context current = sl_device_current(hook->family);
	uint64_t bytes = 0;

	if (current.device >= 0 && current.context && (device_plus_one <= 0 || device_plus_one - 1 == current.device))
		bytes = sl_device_free_bytes(hook->family);
	quiet_end(&quiet);
	return bytes;
}

/* The stack of this call as a slot has it, and SL_FLAG_borrowed in *flags: autograd's threads borrow the Python part. */
static SL_NOINLINE uint64_t take_stack(unsigned *flags)
{
	int saved = sl_agent_work_begin();
	struct sl_stack_ids stacks = sl_stacks_capture(sl_agent->options.stacks);

	if (!stacks.python && (stacks.python = sl_labels_borrowed_stack()))
		*flags |= SL_FLAG_borrowed;
	sl_agent_work_end(saved);
	return stacks.python | (uint64_t)stacks.native << 32;
}

/* Field by field: this is the path of every call. */
static inline void begin_frame(struct sl_frame *frame, unsigned api, unsigned class, struct sl_frame *outer, const void *caller)
{
	frame->outer = outer;
	frame->owner = owner_of(outer, class, caller);
	frame->check = sl_unwound_check(frame, frame);
	frame->slot = NULL;
	frame->slot_check = SL_FRAME_OPEN;
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
		sl_limit_keep(&frame->claim, &owner->second->more.claim);
	owner->slot->call.head = sl_slot_with_driver_api(owner->slot->call.head, frame->api);
}

SL_HOT bool sl_record_open(struct sl_frame *frame, unsigned api, const void *caller, const struct sl_fields *in)
{
	unsigned row = in->api ? in->api : api, flags = in->flags;
	const struct traits trait = traits[sl_hooks[row].verb];
	struct sl_agent_thread *thread = &sl_thread;
	uint64_t seq, stacks = 0, label;
	struct sl_slot *slot, *second;
	struct sl_producer *ring;
	struct sl_agent *agent;

	/* Passed the wrapper's frame: to ask for our own address would cost a register. */
	if (SL_UNLIKELY(thread->inside && sl_unwound_inside_at((uintptr_t)frame)) || SL_UNLIKELY(!sl_agent_attached()))
		return false;
	if (SL_UNLIKELY(trait.ends))
		sl_known_forget();
	agent = sl_agent;
	/* A call that was left may have had its frame at the same place. */
	if (SL_UNLIKELY(thread->top != NULL))
		sl_unwound_drop(thread, frame);
	begin_frame(frame, row, trait.class, thread->top, caller);
	atomic_signal_fence(memory_order_release); /* a signal handler's call looks at all open calls */
	thread->top = frame;
	if (SL_UNLIKELY(sl_limit_active))
		sl_limited_open(frame, &sl_hooks[row], in);
	if (frame->owner) {
		open_inside(frame);
		return true;
	}
	if (frame->outer)
		flags |= SL_FLAG_nested;
	if (trait.stack && atomic_load_explicit(&agent->stacks, memory_order_relaxed))
		stacks = take_stack(&flags);
	if (SL_UNLIKELY(trait.loads))
		frame->free_bytes = in->made ? 0 : free_around(&sl_hooks[row], in->device_plus_one);
	label = (uint64_t)sl_labels_current() << 32;
	ring = thread->ring;
	do {
		slot = sl_ring_reserve(ring, 2, &seq);
		frame->seq = seq;
		frame->slot = slot;
		if (SL_UNLIKELY(!slot)) {
			frame->slot_check = sl_unwound_slot_check(frame);
			return true;
		}
		frame->second = second = sl_ring_slot(ring, seq + 1);
		if (!frame->outer)
			thread->open_seq = seq;
		frame->begin_ns = sl_clock_before(&agent->clock);

		slot->call.head = sl_slot_head(row, in->kind, flags, in->device_plus_one > 0 ? in->device_plus_one - 1 : -1);
		slot->call.begin_ns = frame->begin_ns;
		slot->call.duration_ns = 0;
		slot->call.address = in->address;
		slot->call.bytes = in->bytes;
		slot->call.stacks = stacks;
		slot->call.result = label;
		second->more.stream = in->stream;
		second->more.context = in->context;
		second->more.object = in->object;
		second->more.extra = in->extra;
		second->more.extra2 = in->extra2;
		second->more.caller = (uintptr_t)caller;
		if (SL_UNLIKELY(sl_limit_active)) {
			second->more.claim = 0;
			sl_limit_keep(&frame->claim, &second->more.claim);
		}
	} while (SL_UNLIKELY(!sl_ring_publish(ring, slot, seq, SL_SLOT_IN_FLIGHT, true)));
	frame->slot_check = sl_unwound_slot_check(frame);
	return true;
}

/*
 * Is the driver asked for this call's device and context?  Not for HSA: HIP, which would answer, may not be loaded.  A context that
 * an allocation makes is sampled when the allocation is over; by then its share is known apart from the block.
 */
static bool is_asked(const struct sl_frame *frame, const struct sl_hooks_row *hook)
{
	if (hook->verb == SL_VERB_PRIMARY_RETAIN)
		return !frame->outer || !traits[sl_hooks[frame->outer->api].verb].place;
	return (hook->verb != SL_VERB_MAP || hook->kind == SL_KIND_imported) && hook->family != SL_FAMILY_hsa;
}

/*
 * A device or context that is not known is the calling thread's.  used: there is memory on the device from now on, so
 * it may be sampled; not so after a reset, where HIP would make the context again to answer.
 */
static SL_NOINLINE struct sl_vendor_context ask_place(enum sl_family family, struct sl_vendor_context place, bool used)
{
	int saved = sl_agent_work_begin();

	if (place.device < 0 || !place.context) {
		struct sl_vendor_context current = sl_device_current(family);

		if (place.device < 0)
			place.device = current.device;
		if (!place.context && place.device == current.device)
			place.context = current.context;
	}
	if (used)
		sl_device_used(place.device, family);
	sl_agent_work_end(saved);
	return place;
}

/*
 * Stream-ordered memory lies where its pool does, else where its stream does; imported memory where its address says.  So does that
 * of a pool or stream that is not known.
 */
#define DEFAULT_STREAM 2 /* CU_STREAM_PER_THREAD, hipStreamPerThread; the legacy one is 1 or NULL */
#define BY_ADDRESS     (1u << SL_KIND_pool | 1u << SL_KIND_imported)

static SL_NOINLINE int device_of_address(const struct sl_hooks_row *hook, const struct sl_fields *out)
{
	bool imported = out->kind == SL_KIND_imported;
	bool by_thread = !out->object && out->stream <= DEFAULT_STREAM;
	int saved, device = imported ? 0 : sl_device_named(out->object, out->object ? 0 : out->stream);

	if (device)
		return device - 1;
	if (!imported && by_thread && hook->family != SL_FAMILY_hsa)
		return -1;					      /* the calling thread's */
	if (imported && sl_vendor_of(hook->family) != SL_VENDOR_CUDA) /* HIP remembers that an address was none */
		return -1;
	saved = sl_agent_work_begin();
	device = sl_device_of_pointer(hook->family, out->address);
	sl_agent_work_end(saved);
	return imported && device < 0 ? -1 : device;
}

/* Device and context: of the row, of the driver call inside, else asked of the driver after the call. */
static inline __attribute__((always_inline)) struct sl_vendor_context
place_of(const struct sl_frame *frame, const struct sl_hooks_row *hook, const struct sl_fields *out, bool ok)
{
	struct sl_vendor_context place = {.device = out->device_plus_one - 1, .context = out->context};
	const struct traits trait = traits[hook->verb];
	bool on_host = sl_event_kinds[out->kind].on_host & (trait.class == SL_CLASS_MEMORY);

	if (frame->slot && !out->device_plus_one)
		place.device = sl_slot_device(frame->slot);
	if (frame->slot && !out->context)
		place.context = frame->second->more.context;
	if (SL_UNLIKELY(BY_ADDRESS >> out->kind & 1) && place.device == -1 && ok && trait.place)
		place.device = device_of_address(hook, out);
	on_host |= place.device == SL_NO_DEVICE - 1;
	if (trait.place && is_asked(frame, hook))
		place = ask_place(hook->family, place, ok && !on_host && hook->verb != SL_VERB_DEVICE_RESET);
	if (on_host || place.device < 0)
		place.device = -1;
	return place;
}

static SL_NOINLINE void close_limit(struct sl_frame *frame, const struct sl_hooks_row *hook, const struct sl_fields *out, bool ok)
{
	bool placed = ok && (hook->verb == SL_VERB_ALLOC || hook->verb == SL_VERB_DEVICE_RESET);
	int saved = sl_agent_work_begin();
	struct sl_vendor_context place = {.device = out->device_plus_one - 1, .context = out->context};

	if (placed)
		place = place_of(frame, hook, out, ok); /* asked while the claim is still in the slot */
	sl_limited_close(frame, hook, out, ok, place);
	sl_agent_work_end(saved);
}

/* Writes what one call did to further objects, with the time of the call. */
static void record_more(const struct sl_frame *frame, const struct sl_hooks_row *hook, const struct sl_fields *out)
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
			memset(&slot->call, 0, sizeof(slot->call));
			memset(&second->more, 0, sizeof(second->more));
			slot->call.head = sl_slot_head((unsigned)(hook + 1 - sl_hooks), hook[1].kind, 0, -1);
			slot->call.begin_ns = frame->begin_ns;
			second->more.object = (uintptr_t)out->more[i];
			second->more.caller = frame->second->more.caller;
		} while (SL_UNLIKELY(!sl_ring_publish(ring, slot, seq, SL_SLOT_DONE, true)));
	}
}

/* Asks the driver for what a row cannot say and only some calls have. */
static SL_NOINLINE void ask_more(struct sl_frame *frame, const struct sl_hooks_row *hook, const struct sl_fields *out)
{
	bool memory = hook->verb == SL_VERB_ALLOC || hook->verb == SL_VERB_FREE;
	uint64_t graph;
	int saved = sl_agent_work_begin();

	if (hook->verb == SL_VERB_STREAM_CREATE)
		sl_device_remember(out->stream, sl_slot_device(frame->slot) + 1);
	if (out->kind == SL_KIND_imported && (hook->verb == SL_VERB_ALLOC || hook->verb == SL_VERB_MAP) && !out->bytes &&
	    hook->family != SL_FAMILY_hsa)
		frame->slot->call.bytes = sl_device_size_of(hook->family, out->address);
	if (out->stream && memory && sl_device_capturing(hook->family, out->stream, &graph)) {
		sl_slot_add_flags(frame->slot, SL_FLAG_captured);
		frame->second->more.object = graph;
		if (out->kind == SL_KIND_pool)
			frame->slot->call.head ^= sl_slot_head(0, SL_KIND_pool ^ SL_KIND_graph, 0, 0);
	}
	sl_agent_work_end(saved);
}

/* Capture the stack late: after a failure, or on free with --free-stacks. */
static SL_NOINLINE void take_late_stack(struct sl_slot *slot)
{
	unsigned flags = 0;

	if (!slot->call.stacks)
		slot->call.stacks = take_stack(&flags);
	sl_slot_add_flags(slot, flags);
}

/* A failed call has no address whose device could be asked: it is where its pool or stream lies.  True: on the host. */
static bool place_failed(struct sl_frame *frame, const struct sl_hooks_row *hook, const struct sl_fields *out)
{
	bool names = out->kind == SL_KIND_pool || hook->verb == SL_VERB_GRAPH_LAUNCH;
	int device_plus_one = names && !out->device_plus_one ? sl_device_named(out->object, out->stream) : 0;
	int device = device_plus_one == SL_NO_DEVICE ? -1 : device_plus_one - 1;

	if (!device_plus_one || device == sl_slot_device(frame->slot))
		return device_plus_one == SL_NO_DEVICE;
	frame->slot->call.head = sl_slot_with_device(frame->slot->call.head, device);
	frame->second->more.context = 0;
	return device_plus_one == SL_NO_DEVICE;
}

static SL_NOINLINE void close_failed(struct sl_frame *frame, const struct sl_hooks_row *hook, int64_t result, uint64_t end_ns,
				     const struct sl_fields *out, bool injected)
{
	bool on_host;

	take_late_stack(frame->slot);
	on_host = place_failed(frame, hook, out);
	if (frame->refuse || frame->inject || injected)
		sl_slot_add_flags(frame->slot, SL_FLAG_injected);
	if (result && result == sl_event_families[hook->family].oom && sl_stacks_has_room(SL_STACKS_ROOM_FIRST)) {
		const struct quiet quiet = quiet_begin();

		sl_thread.ooms++;
		sl_device_oom(sl_thread.ring->thread, frame->seq, sl_slot_device(frame->slot), hook->family,
			      on_host ? SL_KIND_host_pinned : out->kind, end_ns);
		quiet_end(&quiet);
	}
}

/* The ring may be lost with the node: wake the writer, so that what led to this is in the file. */
static SL_NOINLINE void tell_writer(struct sl_agent *agent)
{
	int saved = errno;

	atomic_store(&agent->urgent, 1);
	sl_agent_call_writer(agent);
	errno = saved;
}

static SL_NOINLINE void close_late(void)
{
	int saved = sl_agent_work_begin();

	sl_agent_life.late();
	sl_agent_work_end(saved);
}

/*
 * The slot was given up, because the call moved to another thread with its fiber, or the stack looked as if it had been
 * left.
 */
static SL_NOINLINE void record_again(struct sl_frame *frame, unsigned row)
{
	struct sl_producer *ring = sl_thread.ring;
	struct sl_slot *slot, *second;

	do {
		frame->slot = slot = sl_ring_reserve(ring, 2, &frame->seq);
		if (!slot)
			return; /* the event counts as lost */
		frame->second = second = sl_ring_slot(ring, frame->seq + 1);
		memset(&slot->call, 0, sizeof(slot->call));
		memset(&second->more, 0, sizeof(second->more));
		slot->call.head = sl_slot_head(row, SL_KIND_none, 0, -1);
		slot->call.begin_ns = frame->begin_ns;
		slot->call.result = (uint64_t)sl_labels_current() << 32;
	} while (SL_UNLIKELY(!sl_ring_publish(ring, slot, frame->seq, SL_SLOT_IN_FLIGHT, true)));
}

static inline void close_slot(struct sl_agent *agent, struct sl_frame *frame, unsigned row, int64_t result, bool ok,
			      const struct sl_fields *out)
{
	const struct sl_hooks_row *hook = &sl_hooks[row];
	/* Verbs stamped before the call use the end only for duration. */
	uint64_t end_ns = sl_clock_stamp(&agent->clock, !sl_event_verbs[hook->verb].stamped_before);
	struct sl_vendor_context place = place_of(frame, hook, out, ok);
	struct sl_slot *slot = frame->slot, *second = frame->second;
	uint64_t head = slot->call.head;
	bool late;

	slot->call.head = sl_slot_head_kept(head) | sl_slot_head(row, out->kind, out->flags, place.device);
	slot->call.duration_ns = end_ns > frame->begin_ns ? end_ns - frame->begin_ns : 0;
	slot->call.address = out->address;
	slot->call.bytes = out->bytes;
	slot->call.result |= (uint32_t)result;
	second->more.stream = out->stream;
	second->more.context = place.context;
	second->more.object = out->object;
	second->more.extra = out->extra;
	second->more.extra2 = out->extra2;
	if (SL_UNLIKELY(!ok))
		close_failed(frame, hook, result, end_ns, out, head >> SL_SLOT_FLAGS_AT & SL_FLAG_injected);
	else if (SL_UNLIKELY(out->stream || out->kind == SL_KIND_imported))
		ask_more(frame, hook, out);
	if (SL_UNLIKELY(agent->options.free_stacks) && hook->verb == SL_VERB_FREE)
		take_late_stack(frame->slot);
	if (SL_UNLIKELY(traits[hook->verb].loads) && frame->free_bytes) {
		second->more.extra = frame->free_bytes;
		second->more.extra2 = ok ? free_around(hook, place.device + 1) : 0;
	}
	if (SL_UNLIKELY(out->more != NULL) && ok)
		record_more(frame, hook, out);
	late = atomic_load_explicit(&agent->phase, memory_order_relaxed) == SL_PHASE_LATE;
	if (SL_UNLIKELY(late))
		sl_slot_add_flags(frame->slot, SL_FLAG_late);
	atomic_store_explicit(&slot->state, SL_SLOT_WORD(frame->seq, SL_SLOT_DONE, true), memory_order_release);
	if (SL_UNLIKELY(!ok) && agent->ring->elsewhere)
		tell_writer(agent);
	if (SL_UNLIKELY(late))
		close_late();
}

/* A driver call inside a runtime call knows what the runtime's prototype does not say. */
static void tell_owner(const struct sl_frame *owner, const struct sl_frame *frame, const struct sl_fields *out)
{
	uint64_t *head = &owner->slot->call.head;

	if (frame->refuse)
		sl_slot_add_flags(owner->slot, SL_FLAG_injected);
	if (frame->class != owner->class)
		return;
	/* Not from HSA: HIP knows better which of its devices it uses, and HIP's managed memory is in HSA pools of the host. */
	if (out->device_plus_one && sl_hooks[frame->api].family != SL_FAMILY_hsa)
		*head = sl_slot_with_device(*head, out->device_plus_one - 1);
	if (out->context)
		owner->second->more.context = out->context;
}

/*
 * A fiber that began its call on another thread may be the first to come to this one.  A forked child has the parent's
 * generation.
 */
static SL_NOINLINE bool is_new_here(const struct sl_agent_thread *thread)
{
	return !thread->generation && sl_agent_attached();
}

SL_HOT void sl_record_close(struct sl_frame *frame, int64_t result, bool ok, const struct sl_fields *out)
{
	unsigned row = out->api ? out->api : frame->api;
	struct sl_agent_thread *thread = &sl_thread;
	struct sl_agent *agent = sl_agent;

	frame->slot_check &=
		~(uintptr_t)SL_FRAME_EVENT; /* the call has returned: a signal handler's call from now on is not part of it */
	atomic_signal_fence(memory_order_seq_cst);
	/* A child forked inside the call has another recording, or none. */
	if (SL_LIKELY(thread->generation == atomic_load_explicit(&agent->generation, memory_order_relaxed)) ||
	    is_new_here(thread)) {
		if (SL_UNLIKELY(sl_limit_active))
			close_limit(frame, &sl_hooks[row], out, ok);
		if (frame->owner && sl_unwound_is_recorded(frame->owner))
			tell_owner(frame->owner, frame, out);
		if (SL_UNLIKELY(frame->slot && atomic_load_explicit(&frame->slot->state, memory_order_relaxed) !=
						       SL_SLOT_WORD(frame->seq, SL_SLOT_IN_FLIGHT, true)))
			record_again(frame, row);
		if (SL_LIKELY(frame->slot != NULL))
			close_slot(agent, frame, row, result, ok, out);
	}
	/* Last, so that a call whose closing is left by a signal handler is found among the open ones. */
	thread->top = frame->outer;
	frame->check = 0;
}

void sl_record_made(unsigned api, const void *caller, int64_t result, struct sl_fields *out)
{
	struct sl_frame frame;

	out->made = true;
	if (sl_record_open(&frame, api, caller, out))
		sl_record_close(&frame, result, !result, out);
}

void sl_record_failed(unsigned api, const void *caller, int64_t result)
{
	struct sl_fields fields = {.kind = SL_KIND_none};
	struct sl_frame frame;

	if (!sl_record_open(&frame, api, caller, &fields))
		return;
	fields.device_plus_one = ask_place(sl_hooks[api].family, (struct sl_vendor_context){.device = -1}, false).device + 1;
	sl_record_close(&frame, result, false, &fields);
}

/* The first slot of a block event. */
static inline __attribute__((always_inline)) void put_block(struct sl_slot *slot, uint64_t head, uint64_t address, uint64_t bytes,
							    uint64_t allocated, uint64_t reserved, uint64_t label_and_stack)
{
	slot->instant.head = head;
	slot->instant.time_ns = sl_clock_after(&sl_agent->clock);
	slot->instant.extra = allocated;
	slot->instant.address = address;
	slot->instant.bytes = bytes;
	slot->instant.extra2 = reserved;
	slot->instant.label = label_and_stack;
}

/* The second slot of a block event. */
static void put_asked(struct sl_slot *second, const struct sl_asked *asked)
{
	memset(&second->more, 0, sizeof(second->more));
	second->more.stream = asked->stream;
	second->more.object = asked->object;
}

/* The Python stack of a framework's block; 0 also while asleep. */
static inline uint32_t block_stack(unsigned *flags)
{
	uint32_t python;

	if (!(atomic_load_explicit(&sl_agent->stacks, memory_order_relaxed) & SL_STACKS_PYTHON))
		return 0;
	python = sl_stacks_capture(SL_STACKS_PYTHON).python;
	if (!python && (python = sl_labels_borrowed_stack()))
		*flags |= SL_FLAG_borrowed;
	return python;
}

/*
 * No work here is half done that a later call must find: a signal handler may come anywhere, make such calls and leave by
 * longjmp.  So the thread is not marked as inside, and errno needs no care.
 */
SL_HOT bool sl_record_block_again(unsigned api, uint64_t address, uint64_t bytes, int device, uint64_t allocated, uint64_t reserved,
				  const struct sl_asked *asked)
{
	struct sl_agent_thread *thread = &sl_thread;
	struct sl_agent *agent = sl_agent;
	uint64_t seq, lent = 0, label = 0;
	struct sl_slot *slot;
	uint32_t python = 0;
	unsigned flags = asked && asked->captured ? SL_FLAG_captured : 0;

	if (SL_UNLIKELY(thread->steady != atomic_load_explicit(&agent->generation, memory_order_relaxed)) ||
	    SL_UNLIKELY(thread->top != NULL) || SL_UNLIKELY(thread->inside) ||
	    SL_UNLIKELY(atomic_load_explicit(&agent->phase, memory_order_relaxed) != SL_PHASE_RUNNING))
		return false;
	if (atomic_load_explicit(&agent->stacks, memory_order_relaxed) & SL_STACKS_PYTHON) {
		python = sl_stacks_again();
		if (SL_UNLIKELY(python == SL_STACKS_UNKNOWN))
			return false;
	}
	if (SL_LIKELY(thread->has_label))
		label = thread->label;
	else if (atomic_load_explicit(&sl_labels_used, memory_order_relaxed))
		label = (lent = sl_labels_of_block()) >> 32;
	if (!python && (uint32_t)lent && atomic_load_explicit(&agent->stacks, memory_order_relaxed) & SL_STACKS_PYTHON) {
		python = (uint32_t)lent;
		flags |= SL_FLAG_borrowed;
	}
	do {
		slot = sl_ring_reserve(thread->ring, asked ? 2 : 1, &seq);
		if (SL_UNLIKELY(!slot))
			return true; /* the event counts as lost */
		if (asked)
			put_asked(sl_ring_slot(thread->ring, seq + 1), asked);
		put_block(slot, sl_slot_head(api, SL_KIND_block, flags, device), address, bytes, allocated, reserved,
			  label | (uint64_t)python << 32);
	} while (SL_UNLIKELY(!sl_ring_publish(thread->ring, slot, seq, SL_SLOT_DONE, asked)));
	return true;
}

void sl_record_block(unsigned api, uint64_t address, uint64_t bytes, int device, uint64_t allocated, uint64_t reserved,
		     const struct sl_asked *asked, uint32_t label)
{
	struct sl_agent_thread *thread = &sl_thread;
	struct sl_slot *slot;
	uint64_t seq;
	uint32_t python;
	unsigned flags = 0;
	int saved = errno;

	if (sl_unwound_inside() || !sl_agent_attached())
		return;
	sl_unwound_drop_before_instant(thread);
	sl_agent_begin(thread);
	python = block_stack(&flags);
	flags |= asked && asked->captured ? SL_FLAG_captured : 0;
	if (!label)
		label = sl_labels_current();
	do {
		slot = sl_ring_reserve(thread->ring, asked ? 2 : 1, &seq);
		if (SL_UNLIKELY(!slot))
			break;
		if (asked)
			put_asked(sl_ring_slot(thread->ring, seq + 1), asked);
		put_block(slot, sl_slot_head(api, SL_KIND_block, flags, device), address, bytes, allocated, reserved,
			  label | (uint64_t)python << 32);
	} while (SL_UNLIKELY(!sl_ring_publish(thread->ring, slot, seq, SL_SLOT_DONE, asked)));
	sl_agent_end(thread);
	errno = saved;
}
