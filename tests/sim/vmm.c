/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory management: physical memory is freed when the last reference to its handle and its last mapping are gone.
 * Reserving addresses is a separate call and takes no memory.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RESERVE_BASE 0x300000000000ull
#define RESERVE_END  0x400000000000ull
enum { HANDLE_FD = 1, HANDLE_FABRIC = 8 };

struct location {
	int type, id;
};
struct allocation_prop { /* CUmemAllocationProp */
	int type, handle_types;
	struct location location;
	void *windows;
	unsigned char flags[8];
};
struct multicast_prop {
	unsigned devices;
	size_t size;
	unsigned long long handle_types, flags;
};
struct shared_memory { /* what another process gets: in a memfd, or as the 64 bytes of a fabric handle */
	char magic[8];
	int device, pad;
	uint64_t bytes;
	char rest[40];
};
_Static_assert(sizeof(struct shared_memory) == 64, "as large as CUmemFabricHandle");

struct physical {
	struct sim_object object;
	struct allocation_prop prop;
	int device;	    /* -1: host */
	enum sim_kind kind; /* vmm, imported, or none: a multicast object */
	uint64_t bytes, charge;
	int references, mappings;
	struct binding *bindings;
};
struct binding {
	struct physical *memory;
	uint64_t offset, bytes;
	struct binding *next;
};
struct mapping {
	struct sim_object object;
	struct physical *memory;
};

static struct reservation {
	struct sim_object object;
	struct reservation *next;
} * freed_reservations;
static uint64_t reserved_to = RESERVE_BASE;

static struct physical *physical_of(uint64_t handle)
{
	struct physical *p = sim_object_get(handle, SIM_T_PHYSICAL);
	return p && p->references ? p : NULL;
}

static struct physical *new_physical(struct sim_call *call, enum sim_kind kind, int device, uint64_t bytes)
{
	struct physical *p = sim_object_new(sizeof *p, SIM_T_PHYSICAL, NULL);
	if (!p)
		return NULL;
	p->kind = kind;
	p->device = device;
	p->bytes = bytes;
	p->references = 1;
	if (kind)
		sim_journal_effect(call, SIM_EFFECT_ALLOC, kind, device, p->object.key, bytes);
	return p;
}

static void drop_if_last(struct sim_call *call, struct physical *p)
{
	if (p->references || p->mappings)
		return;
	if (p->kind) {
		call->bytes = p->bytes;
		sim_journal_effect(call, SIM_EFFECT_FREE, p->kind, p->device, p->object.key, p->bytes);
	}
	if (p->charge)
		sim_device_give(p->device, p->charge);
	while (p->bindings) {
		struct binding *b = p->bindings;
		p->bindings = b->next;
		b->memory->mappings--;
		drop_if_last(call, b->memory);
		free(b);
	}
	sim_object_remove(&p->object);
	free(p);
}

int cuMemGetAllocationGranularity(size_t *out, const struct allocation_prop *prop, int option)
{
	SIM_BEGIN(cuMemGetAllocationGranularity, QUIET, .out = {SIM_OUT(out)}, .needs = 1);
	if (!out || !prop)
		SIM_RETURN(SIM_INVALID_VALUE);
	*out = sim_config.granularity;
	SIM_RETURN(SIM_OK);
}

int cuMemCreate(uint64_t *out, size_t bytes, const struct allocation_prop *prop, unsigned long long flags)
{
	SIM_BEGIN(cuMemCreate, ALLOC, .kind = SIM_KIND_VMM, .out = {SIM_OUT(out)}, .bytes = bytes, .needs = 1,
		  .device = prop && prop->location.type == 1 ? prop->location.id : -1);
	if (!out || !prop || !bytes || bytes % sim_config.granularity || flags || prop->location.type < 1 ||
	    prop->location.type > 4)
		SIM_RETURN(SIM_INVALID_VALUE);
	bool host = prop->location.type != 1;
	call.device = host ? -1 : prop->location.id;
	if (!host && sim_device_physical(call.device) < 0)
		SIM_RETURN(SIM_INVALID_DEVICE);
	int error = host ? SIM_OK : sim_device_take(call.device, bytes);
	if (error)
		SIM_RETURN(error);
	struct physical *p = new_physical(&call, SIM_KIND_VMM, call.device, bytes);
	if (!p)
		SIM_RETURN(SIM_OUT_OF_MEMORY);
	p->prop = *prop;
	p->charge = host ? 0 : bytes;
	*out = call.address = p->object.key;
	SIM_RETURN(SIM_OK);
}

int cuMemRelease(uint64_t handle)
{
	SIM_BEGIN(cuMemRelease, FREE, .kind = SIM_KIND_VMM, .address = handle, .needs = 1);
	struct physical *p = physical_of(handle);
	if (!p)
		SIM_RETURN(SIM_INVALID_VALUE);
	call.device = p->device;
	p->references--;
	drop_if_last(&call, p);
	SIM_RETURN(SIM_OK);
}

int cuMemRetainAllocationHandle(uint64_t *out, void *address)
{
	SIM_BEGIN(cuMemRetainAllocationHandle, OTHER, .out = {SIM_OUT(out)}, .address = (uintptr_t)address, .needs = 1);
	struct mapping *m = sim_object_get((uintptr_t)address, SIM_T_MAPPING);
	if (!out || !m)
		SIM_RETURN(SIM_INVALID_VALUE);
	m->memory->references++;
	*out = m->memory->object.key;
	SIM_RETURN(SIM_OK);
}

int cuMemGetAllocationPropertiesFromHandle(struct allocation_prop *out, uint64_t handle)
{
	SIM_BEGIN(cuMemGetAllocationPropertiesFromHandle, QUIET, .out = {SIM_OUT(out)}, .needs = 1);
	struct physical *p = physical_of(handle);
	if (!p || !out)
		SIM_RETURN(SIM_INVALID_VALUE);
	*out = p->prop;
	SIM_RETURN(SIM_OK);
}

int cuMemAddressReserve(uint64_t *out, size_t bytes, size_t alignment, uint64_t wish, unsigned long long flags)
{
	SIM_BEGIN(cuMemAddressReserve, OTHER, .out = {SIM_OUT(out)}, .bytes = bytes, .needs = 1);
	if (!out || !bytes || bytes % sim_config.granularity || flags)
		SIM_RETURN(SIM_INVALID_VALUE);
	struct reservation **link = &freed_reservations;
	while (*link && (*link)->object.span != bytes)
		link = &(*link)->next;
	struct reservation *r = *link;
	if (r) {
		*link = r->next;
	} else {
		uint64_t unit = alignment > sim_config.granularity ? alignment : sim_config.granularity;
		uint64_t at = sim_round_up(reserved_to, unit);
		if (bytes > RESERVE_END - at || !(r = calloc(1, sizeof *r)))
			SIM_RETURN(SIM_OUT_OF_MEMORY);
		r->object = (struct sim_object){.key = at, .span = bytes, .type = SIM_T_RESERVATION};
		reserved_to = at + bytes;
		sim_va_back(at, bytes);
	}
	sim_object_insert(&r->object);
	*out = call.address = r->object.key;
	SIM_RETURN(SIM_OK);
}

int cuMemAddressFree(uint64_t address, size_t bytes)
{
	SIM_BEGIN(cuMemAddressFree, OTHER, .address = address, .bytes = bytes, .needs = 1);
	struct reservation *r = sim_object_get(address, SIM_T_RESERVATION);
	if (!r || r->object.key != address || r->object.span != bytes)
		SIM_RETURN(SIM_INVALID_VALUE);
	for (uint64_t at = address; at < address + bytes; at += sim_config.granularity)
		if (sim_object_get(at, SIM_T_MAPPING))
			SIM_RETURN(SIM_INVALID_VALUE);
	sim_object_remove(&r->object);
	r->next = freed_reservations;
	freed_reservations = r;
	SIM_RETURN(SIM_OK);
}

int cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags)
{
	SIM_BEGIN(cuMemMap, OTHER, .address = address, .bytes = bytes, .other = handle, .needs = 1);
	struct sim_object *r = sim_object_get(address, SIM_T_RESERVATION);
	struct physical *p = physical_of(handle);
	if (!r || !p || !bytes || address + bytes > r->key + r->span || offset + bytes > p->bytes || flags)
		SIM_RETURN(SIM_INVALID_VALUE);
	for (uint64_t at = address; at < address + bytes; at += sim_config.granularity)
		if (sim_object_get(at, SIM_T_MAPPING))
			SIM_RETURN(SIM_INVALID_VALUE);
	struct mapping *m = calloc(1, sizeof *m);
	if (!m)
		SIM_RETURN(SIM_OUT_OF_MEMORY);
	m->object = (struct sim_object){.key = address, .span = bytes, .type = SIM_T_MAPPING};
	m->memory = p;
	sim_object_insert(&m->object);
	p->mappings++;
	call.device = p->device;
	SIM_RETURN(SIM_OK);
}

/* The range must be that of one mapping or of several adjacent ones. */
int cuMemUnmap(uint64_t address, size_t bytes)
{
	SIM_BEGIN(cuMemUnmap, OTHER, .address = address, .bytes = bytes, .needs = 1);
	uint64_t at = address;
	while (at < address + bytes) {
		struct sim_object *m = sim_object_get(at, SIM_T_MAPPING);
		if (!m || m->key != at)
			SIM_RETURN(SIM_INVALID_VALUE);
		at += m->span;
	}
	if (at != address + bytes || !bytes)
		SIM_RETURN(SIM_INVALID_VALUE);
	for (at = address; at < address + bytes;) {
		struct mapping *m = sim_object_get(at, SIM_T_MAPPING);
		at += m->object.span;
		sim_object_remove(&m->object);
		m->memory->mappings--;
		drop_if_last(&call, m->memory);
		free(m);
	}
	call.bytes = bytes;
	SIM_RETURN(SIM_OK);
}

int cuMemSetAccess(uint64_t address, size_t bytes, const void *descriptors, size_t count)
{
	SIM_BEGIN(cuMemSetAccess, OTHER, .address = address, .bytes = bytes, .needs = 1);
	SIM_RETURN(sim_object_get(address, SIM_T_MAPPING) && descriptors && count ? SIM_OK : SIM_INVALID_VALUE);
}

int cuMemGetAccess(unsigned long long *flags, const struct location *at, uint64_t address)
{
	SIM_BEGIN(cuMemGetAccess, QUIET, .out = {SIM_OUT(flags)}, .needs = 1);
	if (!flags || !sim_object_get(address, SIM_T_MAPPING))
		SIM_RETURN(SIM_INVALID_VALUE);
	*flags = 3;
	SIM_RETURN(SIM_OK);
}

/* ---- other processes ---- */

static int send(const struct shared_memory *what, void *out, int type)
{
	if (type == HANDLE_FABRIC) {
		memcpy(out, what, sizeof *what);
		return SIM_OK;
	}
	int fd = memfd_create("sim-memory", MFD_CLOEXEC);
	if (fd < 0 || write(fd, what, sizeof *what) != sizeof *what)
		return SIM_OUT_OF_MEMORY;
	*(int *)out = fd;
	return SIM_OK;
}

int cuMemExportToShareableHandle(void *out, uint64_t handle, int type, unsigned long long flags)
{
	SIM_BEGIN(cuMemExportToShareableHandle, OTHER, .other = handle, .needs = 1);
	struct physical *p = physical_of(handle);
	if (!p || !out || (type != HANDLE_FD && type != HANDLE_FABRIC))
		SIM_RETURN(SIM_INVALID_VALUE);
	struct shared_memory shared = {.magic = "SIMVMEM", .device = p->device, .bytes = p->bytes};
	SIM_RETURN(send(&shared, out, type));
}

/* The memory belongs to the exporter: a second handle takes none. */
int cuMemImportFromShareableHandle(uint64_t *out, void *from, int type)
{
	SIM_BEGIN(cuMemImportFromShareableHandle, ALLOC, .kind = SIM_KIND_IMPORTED, .out = {SIM_OUT(out)}, .needs = 1);
	struct shared_memory shared = {0};
	if (type == HANDLE_FABRIC && from)
		memcpy(&shared, from, sizeof shared);
	else if (pread((int)(intptr_t)from, &shared, sizeof shared, 0) != sizeof shared)
		SIM_RETURN(SIM_INVALID_VALUE);
	if (!out || memcmp(shared.magic, "SIMVMEM", 8))
		SIM_RETURN(SIM_INVALID_VALUE);
	struct physical *p = new_physical(&call, SIM_KIND_IMPORTED, shared.device, shared.bytes);
	if (!p)
		SIM_RETURN(SIM_OUT_OF_MEMORY);
	p->prop = (struct allocation_prop){.type = 1, .location = {1, shared.device}};
	call.device = shared.device;
	call.bytes = shared.bytes;
	*out = call.address = p->object.key;
	SIM_RETURN(SIM_OK);
}

int cuMemGetHandleForAddressRange(void *out, uint64_t address, size_t bytes, int type, unsigned long long flags)
{
	SIM_BEGIN(cuMemGetHandleForAddressRange, OTHER, .address = address, .bytes = bytes, .needs = 1);
	if (!out || !sim_object_get(address, SIM_T_ANY))
		SIM_RETURN(SIM_INVALID_VALUE);
	struct shared_memory shared = {.magic = "SIMDBUF", .bytes = bytes};
	SIM_RETURN(send(&shared, out, HANDLE_FD));
}

/* ---- multicast: an object without memory of its own, which keeps what is bound to it ---- */

int cuMulticastGetGranularity(size_t *out, const struct multicast_prop *prop, int option)
{
	SIM_BEGIN(cuMulticastGetGranularity, QUIET, .out = {SIM_OUT(out)}, .needs = 1);
	if (!out || !prop)
		SIM_RETURN(SIM_INVALID_VALUE);
	*out = sim_config.granularity;
	SIM_RETURN(SIM_OK);
}

int cuMulticastCreate(uint64_t *out, const struct multicast_prop *prop)
{
	SIM_BEGIN(cuMulticastCreate, OTHER, .out = {SIM_OUT(out)}, .bytes = prop ? prop->size : 0, .needs = 1);
	if (!out || !prop || !prop->size || !prop->devices)
		SIM_RETURN(SIM_INVALID_VALUE);
	struct physical *p = new_physical(&call, SIM_KIND_NONE, -1, prop->size);
	if (!p)
		SIM_RETURN(SIM_OUT_OF_MEMORY);
	*out = call.address = p->object.key;
	SIM_RETURN(SIM_OK);
}

int cuMulticastAddDevice(uint64_t handle, int device)
{
	SIM_BEGIN(cuMulticastAddDevice, OTHER, .other = handle, .device = device, .needs = 1);
	struct physical *p = physical_of(handle);
	SIM_RETURN(p && !p->kind && sim_device_physical(device) >= 0 ? SIM_OK : SIM_INVALID_VALUE);
}

static int bind(struct physical *object, struct physical *memory, uint64_t offset, uint64_t bytes)
{
	if (!object || object->kind || !memory || !memory->kind || offset + bytes > object->bytes)
		return SIM_INVALID_VALUE;
	struct binding *b = calloc(1, sizeof *b);
	if (!b)
		return SIM_OUT_OF_MEMORY;
	*b = (struct binding){memory, offset, bytes, object->bindings};
	object->bindings = b;
	memory->mappings++;
	return SIM_OK;
}

int cuMulticastBindMem(uint64_t handle, size_t offset, uint64_t memory, size_t memory_offset, size_t bytes,
		       unsigned long long flags)
{
	SIM_BEGIN(cuMulticastBindMem, OTHER, .other = handle, .address = memory, .bytes = bytes, .needs = 1);
	SIM_RETURN(bind(physical_of(handle), physical_of(memory), offset, bytes));
}

int cuMulticastBindAddr(uint64_t handle, size_t offset, uint64_t address, size_t bytes, unsigned long long flags)
{
	SIM_BEGIN(cuMulticastBindAddr, OTHER, .other = handle, .address = address, .bytes = bytes, .needs = 1);
	struct mapping *m = sim_object_get(address, SIM_T_MAPPING);
	SIM_RETURN(bind(physical_of(handle), m ? m->memory : NULL, offset, bytes));
}

int cuMulticastUnbind(uint64_t handle, int device, size_t offset, size_t bytes)
{
	SIM_BEGIN(cuMulticastUnbind, OTHER, .other = handle, .bytes = bytes, .needs = 1);
	struct physical *object = physical_of(handle);
	for (struct binding **link = object ? &object->bindings : NULL; link && *link; link = &(*link)->next) {
		struct binding *b = *link;
		if (b->offset != offset || b->bytes != bytes || b->memory->device != device)
			continue;
		*link = b->next;
		b->memory->mappings--;
		drop_if_last(&call, b->memory);
		free(b);
		SIM_RETURN(SIM_OK);
	}
	SIM_RETURN(SIM_INVALID_VALUE);
}

int sim_mapping_device(struct sim_object *mapping)
{
	return ((struct mapping *)mapping)->memory->device;
}
