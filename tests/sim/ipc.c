/* SPDX-License-Identifier: MIT */
/*
 * Memory of another process. An exported block has a file beside the device file while it lives; the handle names that
 * file. Opening twice gives the same address twice, and the last close unmaps it.
 */
#include "sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ipc_handle { /* CUipcMemHandle: 64 bytes */
	char magic[8];
	int pid, device; /* physical */
	uint64_t id, offset, bytes;
	char rest[24];
};
_Static_assert(sizeof(struct ipc_handle) == 64, "as large as the vendor's");

static char *file_of(const struct ipc_handle *h)
{
	char *path = NULL;
	return asprintf(&path, "%s/ipc-%d-%llu", sim_device_dir(), h->pid, (unsigned long long)h->id) < 0 ? NULL : path;
}

int cuIpcGetMemHandle(struct ipc_handle *out, uint64_t address)
{
	SIM_BEGIN(cuIpcGetMemHandle, OTHER, .out = {SIM_OUT(out)}, .address = address);
	struct sim_block *block = sim_object_get(address, SIM_T_BLOCK);
	if (!out || !block || block->kind != SIM_KIND_DEVICE)
		SIM_RETURN(SIM_INVALID_VALUE);
	*out = (struct ipc_handle){.magic = "SIMIPC",
				   .pid = getpid(),
				   .device = sim_device_physical(block->device),
				   .id = block->id,
				   .offset = address - block->object.key,
				   .bytes = block->bytes};
	if (!block->file) {
		block->file = file_of(out);
		int fd = block->file ? open(block->file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;
		if (fd < 0)
			SIM_RETURN(SIM_OUT_OF_MEMORY);
		close(fd);
	}
	SIM_RETURN(SIM_OK);
}

static struct {
	uint64_t source;
	struct sim_block *found;
} search;

static void match(struct sim_object *object, void *unused)
{
	struct sim_block *block = (struct sim_block *)object;
	if (block->kind == SIM_KIND_IMPORTED && block->source == search.source && block->references)
		search.found = block;
}

static int open_handle(struct sim_call *call, uint64_t *out, const struct ipc_handle *h)
{
	if (!out || memcmp(h->magic, "SIMIPC", 7))
		return SIM_INVALID_VALUE;
	if (h->pid == getpid())
		return SIM_INVALID_CONTEXT; /* one's own memory cannot be imported */
	char *path = file_of(h);
	bool lives = path && access(path, F_OK) == 0;
	free(path);
	if (!lives)
		return SIM_INVALID_VALUE;
	int device = -1;
	for (int d = 0; d < sim_device_count(); d++)
		if (sim_device_physical(d) == h->device)
			device = d;
	if (device < 0)
		return SIM_INVALID_DEVICE;
	call->device = device;
	call->bytes = h->bytes;
	search.source = (uint64_t)h->pid << 40 | h->id;
	search.found = NULL;
	sim_object_each(SIM_T_BLOCK, match, NULL);
	struct sim_block *block = search.found;
	if (!block) {
		uint64_t at = sim_va_take(device, h->bytes);
		block = at ? sim_block_add(call, SIM_KIND_IMPORTED, device, at, h->bytes) : NULL;
	}
	if (!block)
		return SIM_OUT_OF_MEMORY;
	block->source = search.source;
	block->references++;
	*out = block->object.key + h->offset;
	call->address = *out;
	return SIM_OK;
}

int cuIpcOpenMemHandle_v2(uint64_t *out, struct ipc_handle handle, unsigned flags)
{
	SIM_BEGIN(cuIpcOpenMemHandle_v2, ALLOC, .kind = SIM_KIND_IMPORTED, .out = {SIM_OUT(out)});
	SIM_RETURN(open_handle(&call, out, &handle));
}

int cuIpcOpenMemHandle(uint64_t *out, struct ipc_handle handle, unsigned flags)
{
	SIM_BEGIN(cuIpcOpenMemHandle, ALLOC, .kind = SIM_KIND_IMPORTED, .out = {SIM_OUT(out)});
	SIM_RETURN(open_handle(&call, out, &handle));
}

int cuIpcCloseMemHandle(uint64_t address)
{
	SIM_BEGIN(cuIpcCloseMemHandle, FREE, .kind = SIM_KIND_IMPORTED, .address = address);
	struct sim_block *block = sim_object_get(address, SIM_T_BLOCK);
	if (!block || !block->references)
		SIM_RETURN(SIM_INVALID_VALUE);
	call.bytes = block->bytes;
	call.device = block->device;
	if (--block->references)
		SIM_RETURN(SIM_OK);
	sim_va_give(block->device, block->object.key, block->bytes);
	sim_block_drop(block, &call, SIM_EFFECT_FREE);
	SIM_RETURN(SIM_OK);
}
