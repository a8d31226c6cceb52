/* SPDX-License-Identifier: MIT */
/* Copies and fills: their addresses are checked here; what moves is in traps.c. */
#include "sim.h"

/* A device range must be in one live allocation or in adjacent mapped pages. */
static int check(uint64_t address, uint64_t bytes, bool *host)
{
	struct sim_object *object = sim_object_get(address, SIM_T_ANY);
	*host = address < 0x200000000000ull || address >= 0x400000000000ull;
	if (*host)
		return SIM_OK;
	while (object && object->type == SIM_T_MAPPING && object->key + object->span < address + bytes)
		object = sim_object_get(object->key + object->span, SIM_T_MAPPING);
	return object && address + bytes <= object->key + object->span ? SIM_OK : SIM_INVALID_VALUE;
}

static int copy(uint64_t to, uint64_t from, uint64_t bytes)
{
	bool to_host, from_host;
	if (check(to, bytes, &to_host) || check(from, bytes, &from_host))
		return SIM_INVALID_VALUE;
	sim_contents_copy(to, to_host, from, from_host, bytes);
	return SIM_OK;
}

static int fill(uint64_t to, uint64_t value, size_t width, uint64_t count)
{
	bool host;
	if (check(to, count * width, &host))
		return SIM_INVALID_VALUE;
	sim_contents_fill(to, host, value, width, count);
	return SIM_OK;
}

#define FUNCTION(name, params, expression)                                                                                         \
	int name params                                                                                                            \
	{                                                                                                                          \
		SIM_BEGIN(name, QUIET);                                                                                            \
		SIM_RETURN(expression);                                                                                            \
	}
#define COPY(name)                                                                                                                 \
	FUNCTION(name, (uint64_t to, uint64_t from, size_t n), copy(to, from, n))                                                  \
	FUNCTION(name##_ptds, (uint64_t to, uint64_t from, size_t n), copy(to, from, n))
#define COPY_ASYNC(name)                                                                                                           \
	FUNCTION(name, (uint64_t to, uint64_t from, size_t n, void *stream), copy(to, from, n))                                    \
	FUNCTION(name##_ptsz, (uint64_t to, uint64_t from, size_t n, void *stream), copy(to, from, n))
#define FILL(name, type, suffix)                                                                                                   \
	FUNCTION(name##suffix, (uint64_t to, type value, size_t n), fill(to, value, sizeof value, n))                              \
	FUNCTION(name##suffix##_ptds, (uint64_t to, type value, size_t n), fill(to, value, sizeof value, n))                       \
	FUNCTION(name##Async, (uint64_t to, type value, size_t n, void *stream), fill(to, value, sizeof value, n))                 \
	FUNCTION(name##Async_ptsz, (uint64_t to, type value, size_t n, void *stream), fill(to, value, sizeof value, n))

COPY(cuMemcpy)
COPY(cuMemcpyHtoD_v2)
COPY(cuMemcpyDtoH_v2)
COPY(cuMemcpyDtoD_v2)
COPY_ASYNC(cuMemcpyAsync)
COPY_ASYNC(cuMemcpyHtoDAsync_v2)
COPY_ASYNC(cuMemcpyDtoHAsync_v2)
COPY_ASYNC(cuMemcpyDtoDAsync_v2)
FILL(cuMemsetD8, unsigned char, _v2)
FILL(cuMemsetD16, unsigned short, _v2)
FILL(cuMemsetD32, unsigned, _v2)
