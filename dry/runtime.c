/* SPDX-License-Identifier: MIT */
/* Runtime calls that PyTorch makes and the simulator's runtime lacks (as of CUDA 12.8 and 13.0). */
#include "tests/sim/cudart.h"

#include "dry/occupancy.h"

#include <string.h>

enum { THREADS = 39, MAJOR = 75, MINOR = 76, SHARED = 81, BLOCKS = 106 }; /* of CUdevice_attribute */

struct function_attributes { /* cudaFuncAttributes */
	size_t shared, constants, local;
	int threads, registers, ptx, binary, cache, dynamic_shared, carveout, rest[20];
};
_Static_assert(sizeof(struct function_attributes) == 136 || sizeof(struct function_attributes) == 144, "144 bytes since CUDA 11.8");

static int attribute(int which)
{
	int value = 0;

	sim_rt_driver(false)->cuDeviceGetAttribute(&value, which, sim_rt_device());
	return value;
}

int cudaFuncGetAttributes(struct function_attributes *out, const void *function)
{
	memset(out, 0, sizeof(*out));
	out->threads = 1024;
	out->registers = 32;
	out->ptx = out->binary = sl_dry_binary(attribute(MAJOR), attribute(MINOR));
	out->dynamic_shared = 49152;
	out->carveout = -1;
	return 0;
}

int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, const void *function, int block, size_t shared,
							   unsigned flags)
{
	*count = sl_dry_occupancy(block, shared, attribute(THREADS), attribute(SHARED), attribute(BLOCKS));
	return 0;
}

int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *count, const void *function, int block, size_t shared)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, block, shared, 0);
}

int cudaStreamAddCallback(void *stream, void (*call)(void *, int, void *), void *data, unsigned flags)
{
	call(stream, 0, data);
	return 0;
}

static char symbols[1 << 16]; /* variables of device code, all of them */

int cudaGetSymbolAddress(void **out, const void *symbol)
{
	*out = symbols;
	return 0;
}

#if SIM_CUDART_MAJOR >= 13
int cudaGraphNodeGetDependencies(void *node, void **on, void *edges, size_t *count)
#else
int cudaGraphNodeGetDependencies(void *node, void **on, size_t *count)
#endif
{
	*count = 0;
	return 0;
}

int cudaIpcGetEventHandle(struct ipc_handle *out, void *event)
{
	memset(out, 0, sizeof(*out));
	return 0;
}

int cudaIpcOpenEventHandle(void **event, struct ipc_handle handle)
{
	return sim_rt_driver(false)->cuEventCreate(event, 2);
}

int cudaGetFuncBySymbol(const void **out, const void *symbol)
{
	*out = symbol;
	return 0;
}

/* Kernels do nothing, and so do what launches, copies to their variables and draws them. */
#define DOES_NOTHING(name)                                                                                                         \
	int name(void)                                                                                                             \
	{                                                                                                                          \
		return 0;                                                                                                          \
	}
DOES_NOTHING(cudaLaunchKernelExC)
DOES_NOTHING(cudaLaunchCooperativeKernel)
DOES_NOTHING(cudaMemcpyToSymbol)
DOES_NOTHING(cudaMemcpyToSymbolAsync)
DOES_NOTHING(cudaGraphDebugDotPrint)
