/* SPDX-License-Identifier: MIT */
#include "tools/attach/attach.h"

/* Inner calls kept for one outermost call of a thread; when there are more, the oldest become events of their own. */
#define WAITING 64

struct call {
	struct sl_event event;
	uint64_t number, outer;
	struct call *owner; /* the event this call is part of; NULL: it is an event of its own */
};

struct waiting {
	uint32_t tid;
	uint32_t python, native; /* stacks of the call of that number */
	uint64_t number;
	struct call *calls; /* at most WAITING inner calls and the outermost one */
	size_t count, capacity;
};

struct sl_calls {
	struct sl_recording *output;
	unsigned runtime;
	struct waiting *threads;
	size_t thread_count, thread_capacity;
};

static const uint8_t class_of[SL_VERB_COUNT] = {
#define CLASS(verb, name) [SL_VERB_##verb] = SL_CLASS_##name,
#include "agent/call/classes.def"
#undef CLASS
};

static unsigned class_of_call(const struct call *call)
{
	return class_of[sl_hooks[call->event.api].verb];
}

struct sl_calls *sl_calls_new(struct sl_recording *output, unsigned runtime)
{
	struct sl_calls *calls = sl_attach_must(calloc(1, sizeof(*calls)));

	calls->output = output;
	calls->runtime = runtime;
	return calls;
}

static struct waiting *waiting_of(struct sl_calls *calls, uint32_t tid)
{
	struct waiting *thread;

	for (size_t i = 0; i < calls->thread_count; i++)
		if (calls->threads[i].tid == tid)
			return &calls->threads[i];
	calls->threads = sl_attach_room(calls->threads, calls->thread_count, &calls->thread_capacity, sizeof(*calls->threads));
	thread = &calls->threads[calls->thread_count++];
	*thread = (struct waiting){.tid = tid};
	return thread;
}

static void make_event(struct call *call, const struct sl_seen *seen, unsigned runtime)
{
	struct sl_fields fields = sl_rows_read(seen, runtime);
	unsigned api = fields.api ? fields.api : seen->api;

	call->number = seen->number;
	call->outer = seen->outer;
	call->owner = NULL;
	call->event = (struct sl_event){
		.time_ns = sl_event_verbs[sl_hooks[api].verb].stamped_before ? seen->begin_ns : seen->end_ns,
		.duration_ns = seen->end_ns - seen->begin_ns,
		.api = api,
		.kind = fields.kind,
		.flags = fields.flags,
		.device = fields.device_plus_one > 0 ? fields.device_plus_one - 1 : -1,
		.result = (int32_t)seen->result,
		.address = fields.address,
		.bytes = fields.bytes,
		.stream = fields.stream,
		.context = fields.context,
		.object = fields.object,
		.extra = fields.extra,
		.extra2 = fields.extra2,
		.caller = seen->caller,
	};
}

static struct call *call_of(struct waiting *thread, uint64_t number)
{
	for (size_t i = 0; number && i < thread->count; i++)
		if (thread->calls[i].number == number)
			return &thread->calls[i];
	return NULL;
}

/* As the agent's owner_of: the innermost surrounding event that this call may be part of. */
static void find_owner(struct waiting *thread, struct call *call)
{
	struct call *outer = call_of(thread, call->outer), *owner = outer && outer->owner ? outer->owner : outer;
	unsigned class = class_of_call(call);

	if (!owner)
		return;
	if (class != SL_CLASS_CALL && class != class_of_call(owner)) {
		call->event.flags |= SL_FLAG_nested;
		return;
	}
	call->owner = owner;
	owner->event.driver_api = call->event.api;
	if (class != class_of_call(owner))
		return;
	if (call->event.device >= 0)
		owner->event.device = call->event.device;
	if (call->event.context)
		owner->event.context = call->event.context;
}

static int by_number(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* Writes out all waiting calls, in the order in which they began. */
static void write_waiting(struct sl_calls *calls, struct waiting *thread)
{
	if (thread->count > 1)
		qsort(thread->calls, thread->count, sizeof(*thread->calls), by_number);
	for (size_t i = 0; i < thread->count; i++)
		find_owner(thread, &thread->calls[i]);
	for (size_t i = 0; i < thread->count; i++) {
		struct call *call = &thread->calls[i];

		if (!call->owner)
			sl_recording_event(calls->output, thread->tid, &call->event);
	}
	thread->count = 0;
}

/* The thread whose next call has this number. */
static struct waiting *expect(struct sl_calls *calls, uint32_t tid, uint64_t number)
{
	struct waiting *thread = waiting_of(calls, tid);

	if (thread->number != number)
		thread->python = thread->native = 0;
	thread->number = number;
	return thread;
}

void sl_calls_python(struct sl_calls *calls, uint32_t tid, uint64_t number, uint32_t python)
{
	expect(calls, tid, number)->python = python;
}

void sl_calls_native(struct sl_calls *calls, uint32_t tid, uint64_t number, uint32_t native)
{
	expect(calls, tid, number)->native = native;
}

void sl_calls_add(struct sl_calls *calls, const struct sl_seen *seen)
{
	struct waiting *thread = waiting_of(calls, seen->tid);

	if (!sl_rows_has(seen->api))
		return;
	if (thread->count == WAITING)
		write_waiting(calls, thread);
	thread->calls = sl_attach_room(thread->calls, thread->count, &thread->capacity, sizeof(*thread->calls));
	make_event(&thread->calls[thread->count], seen, calls->runtime);
	if (thread->number == seen->number) {
		thread->calls[thread->count].event.python = thread->python;
		thread->calls[thread->count].event.native = thread->native;
	}
	thread->count++;
	if (!seen->outer)
		write_waiting(calls, thread);
}

void sl_calls_end(struct sl_calls *calls)
{
	for (size_t i = 0; i < calls->thread_count; i++) {
		write_waiting(calls, &calls->threads[i]);
		free(calls->threads[i].calls);
	}
	free(calls->threads);
	free(calls);
}
