/* SPDX-License-Identifier: MIT */
/* Arrays and mipmaps: opaque memory, whose size follows from the descriptor. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

enum { LAYERED = 0x01, CUBEMAP = 0x04, SPARSE = 0x40, DEFERRED = 0x80 };

struct descriptor { /* CUDA_ARRAY3D_DESCRIPTOR */
	size_t width, height, depth;
	unsigned format, channels, flags;
};
struct descriptor2 { /* CUDA_ARRAY_DESCRIPTOR */
	size_t width, height;
	unsigned format, channels;
};

struct array {
	struct sim_object object;
	struct descriptor d;
	enum sim_kind kind;
	uint64_t bytes, charge;
	int device;
	unsigned levels;
	struct array *level; /* of a mipmap: views, made on request */
	struct array *mipmap;
};

/* Bytes of one element of one channel; the block formats are per texel, rounded up. */
static unsigned element_bytes(unsigned format)
{
	switch (format) {
	case 0x01:
	case 0x08:
		return 1;
	case 0x02:
	case 0x09:
	case 0x10:
		return 2;
	case 0x03:
	case 0x0a:
	case 0x20:
		return 4;
	}
	return format >= 0xc0 && format <= 0xc5 ? 1 : format <= 0xcb && format > 0xc5 ? 2 : 1;
}

uint64_t sim_array_bytes(uint64_t width, uint64_t height, uint64_t depth, unsigned format, unsigned channels)
{
	return width * (height ? height : 1) * (depth ? depth : 1) * channels * element_bytes(format);
}

static uint64_t level_bytes(const struct descriptor *d, unsigned level)
{
	uint64_t w = d->width >> level, h = d->height >> level;
	uint64_t z = d->flags & (LAYERED | CUBEMAP) ? d->depth : d->depth >> level;
	return sim_array_bytes(w ? w : 1, d->height ? (h ? h : 1) : 0, d->depth ? (z ? z : 1) : 0, d->format, d->channels);
}

static void gone(struct array *a, struct sim_call *call, enum sim_effect effect)
{
	if (a->bytes)
		sim_journal_effect(call, effect, a->kind, a->device, a->object.key, a->bytes);
	if (a->charge)
		sim_device_discharge(a->device, a->charge);
	for (unsigned i = 0; a->level && i < a->levels; i++)
		sim_object_remove(&a->level[i].object);
	free(a->level);
	sim_object_remove(&a->object);
	free(a);
}

static void drop_with_context(struct sim_object *object, struct sim_call *call)
{
	gone((struct array *)object, call, SIM_EFFECT_IMPLICIT);
}

static int create(struct sim_call *call, void **out, const struct descriptor *d, unsigned levels, enum sim_type type,
		  enum sim_kind kind)
{
	if (!out || !d || !d->width || !d->channels || d->channels > 4 || !levels)
		return SIM_INVALID_VALUE;
	uint64_t bytes = 0, charge = 0;
	for (unsigned i = 0; i < levels && !(d->flags & (SPARSE | DEFERRED)); i++)
		bytes += level_bytes(d, i);
	call->device = call->ctx->device;
	call->bytes = bytes;
	int error = bytes && kind == SIM_KIND_ARRAY ? sim_device_charge(call->device, bytes, &charge) : SIM_OK;
	if (error)
		return error;
	struct array *a = sim_object_new(sizeof *a, type, call->ctx);
	if (!a)
		return SIM_OUT_OF_MEMORY;
	a->object.drop = drop_with_context;
	a->d = *d;
	a->kind = kind;
	a->bytes = bytes;
	a->charge = charge;
	a->device = call->device;
	a->levels = levels;
	*out = a;
	call->address = a->object.key;
	if (bytes)
		sim_journal_effect(call, SIM_EFFECT_ALLOC, kind, a->device, a->object.key, bytes);
	return SIM_OK;
}

int cuArrayCreate_v2(void **out, const struct descriptor2 *d)
{
	SIM_BEGIN(cuArrayCreate_v2, ALLOC, .kind = SIM_KIND_ARRAY, .out = {SIM_OUT(out)});
	if (!d)
		SIM_RETURN(SIM_INVALID_VALUE);
	struct descriptor three = {d->width, d->height, 0, d->format, d->channels, 0};
	SIM_RETURN(create(&call, out, &three, 1, SIM_T_ARRAY, SIM_KIND_ARRAY));
}

int cuArray3DCreate_v2(void **out, const struct descriptor *d)
{
	SIM_BEGIN(cuArray3DCreate_v2, ALLOC, .kind = SIM_KIND_ARRAY, .out = {SIM_OUT(out)});
	SIM_RETURN(create(&call, out, d, 1, SIM_T_ARRAY, SIM_KIND_ARRAY));
}

int cuMipmappedArrayCreate(void **out, const struct descriptor *d, unsigned levels)
{
	SIM_BEGIN(cuMipmappedArrayCreate, ALLOC, .kind = SIM_KIND_ARRAY, .out = {SIM_OUT(out)});
	SIM_RETURN(create(&call, out, d, levels, SIM_T_MIPMAP, SIM_KIND_ARRAY));
}

static int destroy(struct sim_call *call, void *handle, enum sim_type type)
{
	struct array *a = sim_object_get((uintptr_t)handle, type);
	if (!a || a->mipmap)
		return SIM_INVALID_HANDLE;
	call->bytes = a->bytes;
	call->device = a->device;
	call->kind = a->kind;
	gone(a, call, SIM_EFFECT_FREE);
	return SIM_OK;
}

int cuArrayDestroy(void *array)
{
	SIM_BEGIN(cuArrayDestroy, FREE, .kind = SIM_KIND_ARRAY, .address = (uintptr_t)array);
	SIM_RETURN(destroy(&call, array, SIM_T_ARRAY));
}

int cuMipmappedArrayDestroy(void *array)
{
	SIM_BEGIN(cuMipmappedArrayDestroy, FREE, .kind = SIM_KIND_ARRAY, .address = (uintptr_t)array);
	SIM_RETURN(destroy(&call, array, SIM_T_MIPMAP));
}

/* A level is a view: it has a handle and no memory. */
int cuMipmappedArrayGetLevel(void **out, void *handle, unsigned level)
{
	SIM_BEGIN(cuMipmappedArrayGetLevel, QUIET, .out = {SIM_OUT(out)});
	struct array *a = sim_object_get((uintptr_t)handle, SIM_T_MIPMAP);
	if (!out || !a || level >= a->levels)
		SIM_RETURN(SIM_INVALID_VALUE);
	if (!a->level && !(a->level = calloc(a->levels, sizeof *a)))
		SIM_RETURN(SIM_OUT_OF_MEMORY);
	struct array *view = &a->level[level];
	if (!view->mipmap) {
		view->mipmap = a;
		view->object = (struct sim_object){.key = (uintptr_t)view, .span = 1, .type = SIM_T_ARRAY};
		view->d = a->d;
		sim_object_insert(&view->object);
	}
	*out = view;
	SIM_RETURN(SIM_OK);
}

int cuArray3DGetDescriptor_v2(struct descriptor *out, void *handle)
{
	SIM_BEGIN(cuArray3DGetDescriptor_v2, QUIET, .out = {SIM_OUT(out)});
	struct array *a = sim_object_get((uintptr_t)handle, SIM_T_ARRAY);
	if (!a || !out)
		SIM_RETURN(SIM_INVALID_HANDLE);
	*out = a->d;
	SIM_RETURN(SIM_OK);
}

/* ---- memory of other APIs ---- */

struct memory_desc { /* CUDA_EXTERNAL_MEMORY_HANDLE_DESC */
	int type;
	union {
		int fd;
		void *windows[2];
	} handle;
	unsigned long long size;
	unsigned flags, reserved[16];
};
struct buffer_desc {
	unsigned long long offset, size;
	unsigned flags, reserved[16];
};
struct mipmap_desc {
	unsigned long long offset;
	struct descriptor array;
	unsigned levels, reserved[16];
};
struct external {
	struct sim_object object;
	uint64_t bytes;
};

int cuImportExternalMemory(void **out, const struct memory_desc *d)
{
	SIM_BEGIN(cuImportExternalMemory, OTHER, .out = {SIM_OUT(out)}, .bytes = d ? d->size : 0);
	if (!out || !d || !d->size)
		SIM_RETURN(SIM_INVALID_VALUE);
	struct external *e = sim_object_new(sizeof *e, SIM_T_EXTMEM, call.ctx);
	if (!e)
		SIM_RETURN(SIM_OUT_OF_MEMORY);
	e->bytes = d->size;
	*out = e;
	call.other = e->object.key;
	SIM_RETURN(SIM_OK);
}

int cuDestroyExternalMemory(void *handle)
{
	SIM_BEGIN(cuDestroyExternalMemory, OTHER, .other = (uintptr_t)handle, .needs = 1);
	struct sim_object *e = sim_object_get((uintptr_t)handle, SIM_T_EXTMEM);
	if (!e)
		SIM_RETURN(SIM_INVALID_HANDLE);
	e->drop(e, &call);
	SIM_RETURN(SIM_OK);
}

/* Freed with cuMemFree, by the program. */
int cuExternalMemoryGetMappedBuffer(uint64_t *out, void *handle, const struct buffer_desc *d)
{
	SIM_BEGIN(cuExternalMemoryGetMappedBuffer, ALLOC, .kind = SIM_KIND_IMPORTED, .out = {SIM_OUT(out)},
		  .bytes = d ? d->size : 0);
	struct external *e = sim_object_get((uintptr_t)handle, SIM_T_EXTMEM);
	if (!out || !e || !d || !d->size || d->offset + d->size > e->bytes)
		SIM_RETURN(e ? SIM_INVALID_VALUE : SIM_INVALID_HANDLE);
	call.device = call.ctx->device;
	uint64_t at = sim_va_take(call.device, d->size);
	if (!at || !sim_block_add(&call, SIM_KIND_IMPORTED, call.device, at, d->size))
		SIM_RETURN(SIM_OUT_OF_MEMORY);
	*out = call.address = at;
	SIM_RETURN(SIM_OK);
}

int cuExternalMemoryGetMappedMipmappedArray(void **out, void *handle, const struct mipmap_desc *d)
{
	SIM_BEGIN(cuExternalMemoryGetMappedMipmappedArray, ALLOC, .kind = SIM_KIND_IMPORTED, .out = {SIM_OUT(out)});
	if (!d || !sim_object_get((uintptr_t)handle, SIM_T_EXTMEM))
		SIM_RETURN(d ? SIM_INVALID_HANDLE : SIM_INVALID_VALUE);
	SIM_RETURN(create(&call, out, &d->array, d->levels, SIM_T_MIPMAP, SIM_KIND_IMPORTED));
}

/* ---- graphics: a buffer of another API, visible between map and unmap ---- */

struct resource {
	struct sim_object object;
	uint64_t bytes;
	int device;
	bool mapped;
	uint64_t at; /* 0: nobody has asked for its address since it was mapped */
};

static void hide(struct resource *r, struct sim_call *call, enum sim_effect effect)
{
	r->mapped = false;
	if (!r->at)
		return;
	sim_journal_effect(call, effect, SIM_KIND_IMPORTED, r->device, r->at, r->bytes);
	sim_va_give(r->device, r->at, r->bytes);
	r->at = 0;
}

static void resource_gone(struct resource *r, struct sim_call *call, enum sim_effect effect)
{
	hide(r, call, effect);
	sim_object_remove(&r->object);
	free(r);
}

static void drop_resource(struct sim_object *object, struct sim_call *call)
{
	resource_gone((struct resource *)object, call, SIM_EFFECT_IMPLICIT);
}

int cuGraphicsGLRegisterBuffer(void **out, unsigned buffer, unsigned flags)
{
	SIM_BEGIN(cuGraphicsGLRegisterBuffer, OTHER, .out = {SIM_OUT(out)});
	struct resource *r = out ? sim_object_new(sizeof *r, SIM_T_RESOURCE, call.ctx) : NULL;
	if (!r)
		SIM_RETURN(SIM_INVALID_VALUE);
	r->object.drop = drop_resource;
	r->bytes = 1 << 20;
	r->device = call.ctx->device;
	*out = r;
	SIM_RETURN(SIM_OK);
}

int cuGraphicsUnregisterResource(void *handle)
{
	SIM_BEGIN(cuGraphicsUnregisterResource, OTHER, .needs = 1);
	struct resource *r = sim_object_get((uintptr_t)handle, SIM_T_RESOURCE);
	if (!r)
		SIM_RETURN(SIM_INVALID_HANDLE);
	resource_gone(r, &call, SIM_EFFECT_FREE);
	SIM_RETURN(SIM_OK);
}

/* Maps or unmaps all resources or none. */
static int set_mapped(struct sim_call *call, unsigned count, void **handles, bool mapped)
{
	for (unsigned i = 0; i < count; i++) {
		struct resource *r = sim_object_get((uintptr_t)handles[i], SIM_T_RESOURCE);
		if (!r)
			return SIM_INVALID_HANDLE;
		if (r->mapped == mapped)
			return mapped ? 208 : 211; /* already mapped; not mapped */
	}
	for (unsigned i = 0; i < count; i++) {
		struct resource *r = sim_object_get((uintptr_t)handles[i], SIM_T_RESOURCE);
		if (mapped)
			r->mapped = true;
		else
			hide(r, call, SIM_EFFECT_FREE);
	}
	return SIM_OK;
}

#define MAPPING(fn, value)                                                                                                         \
	int fn(unsigned count, void **resources, void *stream)                                                                     \
	{                                                                                                                          \
		SIM_BEGIN(fn, OTHER);                                                                                              \
		SIM_RETURN(set_mapped(&call, count, resources, value));                                                            \
	}
MAPPING(cuGraphicsMapResources, true)
MAPPING(cuGraphicsMapResources_ptsz, true)
MAPPING(cuGraphicsUnmapResources, false)
MAPPING(cuGraphicsUnmapResources_ptsz, false)

int cuGraphicsResourceGetMappedPointer_v2(uint64_t *out, size_t *bytes, void *handle)
{
	SIM_BEGIN(cuGraphicsResourceGetMappedPointer_v2, OTHER, .out = {SIM_OUT(out), SIM_OUT(bytes)});
	struct resource *r = sim_object_get((uintptr_t)handle, SIM_T_RESOURCE);
	if (!r || !r->mapped)
		SIM_RETURN(r ? 211 : SIM_INVALID_HANDLE);
	if (!r->at) {
		r->at = sim_va_take(r->device, r->bytes);
		sim_journal_effect(&call, SIM_EFFECT_ALLOC, SIM_KIND_IMPORTED, r->device, r->at, r->bytes);
	}
	if (out)
		*out = r->at;
	if (bytes)
		*bytes = r->bytes;
	call.device = r->device;
	call.address = r->at;
	call.bytes = r->bytes;
	SIM_RETURN(SIM_OK);
}
