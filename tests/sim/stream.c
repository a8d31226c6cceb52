/* SPDX-License-Identifier: MIT */
/* Streams and events: nothing runs, so a stream is the list of frees that wait for its next synchronisation. */
#include "sim.h"

#include <stdlib.h>

#define LEGACY	     ((void *)1)
#define PER_THREAD   ((void *)2)
#define PTSZ(stream) ((stream) ? (stream) : PER_THREAD)

static uint64_t next_id = 1;

static void drop_stream(struct sim_object *object, struct sim_call *call)
{
	struct sim_stream *stream = (struct sim_stream *)object;
	sim_stream_complete(stream);
	sim_object_remove(object);
	free(stream);
}

static struct sim_stream *new_stream(struct sim_ctx *ctx, unsigned flags, int priority)
{
	struct sim_stream *stream = sim_object_new(sizeof *stream, SIM_T_STREAM, ctx);
	if (!stream)
		return NULL;
	stream->object.drop = drop_stream;
	stream->flags = flags;
	stream->priority = priority;
	stream->id = next_id++;
	return stream;
}

struct sim_stream *sim_stream_of(struct sim_call *call, void *handle)
{
	struct sim_ctx *ctx = sim_ctx_current();
	if (handle && handle != LEGACY && handle != PER_THREAD)
		return sim_object_get((uintptr_t)handle, SIM_T_STREAM);
	if (!ctx || !ctx->active)
		return NULL;
	struct sim_stream **slot = &ctx->default_streams[handle == PER_THREAD];
	if (!*slot)
		*slot = new_stream(ctx, 0, 0);
	return *slot;
}

void sim_stream_complete(struct sim_stream *stream)
{
	while (stream->pending) {
		struct sim_pending *p = stream->pending;
		stream->pending = p->next;
		sim_pool_settle(p->pool, p);
		free(p);
	}
}

static void complete_one(struct sim_object *object, void *ctx)
{
	if (!ctx || object->ctx == ctx)
		sim_stream_complete((struct sim_stream *)object);
}

void sim_stream_complete_all(struct sim_ctx *ctx)
{
	sim_object_each(SIM_T_STREAM, complete_one, ctx);
}

int cuStreamCreate(void **out, unsigned flags)
{
	SIM_BEGIN(cuStreamCreate, QUIET, .out = {SIM_OUT(out)});
	if (!out)
		SIM_RETURN(SIM_INVALID_VALUE);
	*out = new_stream(call.ctx, flags, 0);
	SIM_RETURN(*out ? SIM_OK : SIM_OUT_OF_MEMORY);
}

int cuStreamCreateWithPriority(void **out, unsigned flags, int priority)
{
	SIM_BEGIN(cuStreamCreateWithPriority, QUIET, .out = {SIM_OUT(out)});
	if (!out)
		SIM_RETURN(SIM_INVALID_VALUE);
	*out = new_stream(call.ctx, flags, priority);
	SIM_RETURN(*out ? SIM_OK : SIM_OUT_OF_MEMORY);
}

int cuStreamDestroy_v2(void *handle)
{
	SIM_BEGIN(cuStreamDestroy_v2, QUIET, .needs = 1);
	struct sim_object *stream = sim_object_get((uintptr_t)handle, SIM_T_STREAM);
	if (!stream)
		SIM_RETURN(SIM_INVALID_HANDLE);
	stream->drop(stream, &call);
	SIM_RETURN(SIM_OK);
}

static int synchronize(struct sim_call *call, void *handle)
{
	struct sim_stream *stream = sim_stream_of(call, handle);
	if (!stream)
		return SIM_INVALID_HANDLE;
	if (stream->capture) {
		stream->capture_broken = true;
		return SIM_CAPTURE_UNSUPPORTED;
	}
	sim_stream_complete(stream);
	return SIM_OK;
}

int cuStreamSynchronize(void *stream)
{
	SIM_BEGIN(cuStreamSynchronize, QUIET);
	SIM_RETURN(synchronize(&call, stream));
}

int cuStreamSynchronize_ptsz(void *stream)
{
	SIM_BEGIN(cuStreamSynchronize_ptsz, QUIET);
	SIM_RETURN(synchronize(&call, PTSZ(stream)));
}

int cuStreamQuery(void *handle)
{
	SIM_BEGIN(cuStreamQuery, QUIET);
	SIM_RETURN(sim_stream_of(&call, handle) ? SIM_OK : SIM_INVALID_HANDLE);
}

int cuStreamQuery_ptsz(void *handle)
{
	SIM_BEGIN(cuStreamQuery_ptsz, QUIET);
	SIM_RETURN(sim_stream_of(&call, PTSZ(handle)) ? SIM_OK : SIM_INVALID_HANDLE);
}

int cuStreamWaitEvent(void *handle, void *event, unsigned flags)
{
	SIM_BEGIN(cuStreamWaitEvent, QUIET);
	SIM_RETURN(sim_stream_of(&call, handle) ? SIM_OK : SIM_INVALID_HANDLE);
}

static int stream_device(struct sim_call *call, void *handle, int *device)
{
	struct sim_stream *stream = sim_stream_of(call, handle);
	if (!stream || !device)
		return SIM_INVALID_HANDLE;
	*device = stream->object.ctx->device;
	return SIM_OK;
}

int cuStreamGetDevice(void *handle, int *device)
{
	SIM_BEGIN(cuStreamGetDevice, QUIET, .out = {SIM_OUT(device)});
	SIM_RETURN(stream_device(&call, handle, device));
}

int cuStreamGetDevice_ptsz(void *handle, int *device)
{
	SIM_BEGIN(cuStreamGetDevice_ptsz, QUIET, .out = {SIM_OUT(device)});
	SIM_RETURN(stream_device(&call, PTSZ(handle), device));
}

static int stream_context(struct sim_call *call, void *handle, void **out)
{
	struct sim_stream *stream = sim_stream_of(call, handle);
	if (!stream || !out)
		return SIM_INVALID_HANDLE;
	*out = stream->object.ctx;
	return SIM_OK;
}

int cuStreamGetCtx(void *handle, void **out)
{
	SIM_BEGIN(cuStreamGetCtx, QUIET, .out = {SIM_OUT(out)});
	SIM_RETURN(stream_context(&call, handle, out));
}

int cuStreamGetCtx_ptsz(void *handle, void **out)
{
	SIM_BEGIN(cuStreamGetCtx_ptsz, QUIET, .out = {SIM_OUT(out)});
	SIM_RETURN(stream_context(&call, PTSZ(handle), out));
}

int cuStreamGetId(void *handle, unsigned long long *id)
{
	SIM_BEGIN(cuStreamGetId, QUIET, .out = {SIM_OUT(id)});
	struct sim_stream *stream = sim_stream_of(&call, handle);
	if (!stream || !id)
		SIM_RETURN(SIM_INVALID_HANDLE);
	*id = stream->id;
	SIM_RETURN(SIM_OK);
}

int cuStreamGetFlags(void *handle, unsigned *flags)
{
	SIM_BEGIN(cuStreamGetFlags, QUIET, .out = {SIM_OUT(flags)});
	struct sim_stream *stream = sim_stream_of(&call, handle);
	if (!stream || !flags)
		SIM_RETURN(SIM_INVALID_HANDLE);
	*flags = stream->flags;
	SIM_RETURN(SIM_OK);
}

int cuStreamGetPriority(void *handle, int *priority)
{
	SIM_BEGIN(cuStreamGetPriority, QUIET, .out = {SIM_OUT(priority)});
	struct sim_stream *stream = sim_stream_of(&call, handle);
	if (!stream || !priority)
		SIM_RETURN(SIM_INVALID_HANDLE);
	*priority = stream->priority;
	SIM_RETURN(SIM_OK);
}

int cuEventCreate(void **out, unsigned flags)
{
	SIM_BEGIN(cuEventCreate, QUIET, .out = {SIM_OUT(out)});
	if (!out)
		SIM_RETURN(SIM_INVALID_VALUE);
	*out = sim_object_new(sizeof(struct sim_object), SIM_T_EVENT, call.ctx);
	SIM_RETURN(*out ? SIM_OK : SIM_OUT_OF_MEMORY);
}

int cuEventDestroy_v2(void *handle)
{
	SIM_BEGIN(cuEventDestroy_v2, QUIET, .needs = 1);
	struct sim_object *event = sim_object_get((uintptr_t)handle, SIM_T_EVENT);
	if (!event)
		SIM_RETURN(SIM_INVALID_HANDLE);
	event->drop(event, &call);
	SIM_RETURN(SIM_OK);
}

int cuEventRecord(void *event, void *stream)
{
	SIM_BEGIN(cuEventRecord, QUIET);
	SIM_RETURN(sim_object_get((uintptr_t)event, SIM_T_EVENT) ? SIM_OK : SIM_INVALID_HANDLE);
}

int cuEventRecord_ptsz(void *event, void *stream)
{
	SIM_BEGIN(cuEventRecord_ptsz, QUIET);
	SIM_RETURN(sim_object_get((uintptr_t)event, SIM_T_EVENT) ? SIM_OK : SIM_INVALID_HANDLE);
}

int cuEventQuery(void *event)
{
	SIM_BEGIN(cuEventQuery, QUIET);
	SIM_RETURN(sim_object_get((uintptr_t)event, SIM_T_EVENT) ? SIM_OK : SIM_INVALID_HANDLE);
}

int cuEventSynchronize(void *handle)
{
	SIM_BEGIN(cuEventSynchronize, QUIET);
	struct sim_object *event = sim_object_get((uintptr_t)handle, SIM_T_EVENT);
	if (!event)
		SIM_RETURN(SIM_INVALID_HANDLE);
	sim_stream_complete_all(event->ctx);
	SIM_RETURN(SIM_OK);
}

int cuEventElapsedTime(float *ms, void *start, void *end)
{
	SIM_BEGIN(cuEventElapsedTime, QUIET, .out = {SIM_OUT(ms)});
	if (!ms)
		SIM_RETURN(SIM_INVALID_VALUE);
	*ms = 0.001f;
	SIM_RETURN(SIM_OK);
}

static int host_function(struct sim_call *call, void *handle, void (*f)(void *), void *data)
{
	if (!sim_stream_of(call, handle) || !f)
		return SIM_INVALID_VALUE;
	sim_unlock(); /* the program's function may call anything but CUDA */
	f(data);
	sim_lock();
	return SIM_OK;
}

int cuLaunchHostFunc(void *handle, void (*f)(void *), void *data)
{
	SIM_BEGIN(cuLaunchHostFunc, QUIET);
	SIM_RETURN(host_function(&call, handle, f, data));
}

int cuLaunchHostFunc_ptsz(void *handle, void (*f)(void *), void *data)
{
	SIM_BEGIN(cuLaunchHostFunc_ptsz, QUIET);
	SIM_RETURN(host_function(&call, PTSZ(handle), f, data));
}
