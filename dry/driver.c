/* SPDX-License-Identifier: MIT */
/* Driver calls that Triton, Inductor's launcher, CUTLASS and DeepGEMM need of a device whose kernels do nothing. */
#include "tests/sim/sim.h"

#include "dry/machine.h"
#include "dry/occupancy.h"

enum { MAX_THREADS = 0, REGISTERS = 4, PTX_VERSION = 5, BINARY_VERSION = 6 }; /* of CUfunction_attribute */

int cuFuncGetAttribute(int *value, int which, void *function)
{
	*value = which == MAX_THREADS				   ? 1024
		 : which == REGISTERS				   ? 32
		 : which == PTX_VERSION || which == BINARY_VERSION ? sl_dry_binary(sl_dry_card.major, sl_dry_card.minor)
								   : 0;
	return SIM_OK;
}

int cuKernelGetAttribute(int *value, int which, void *kernel, int device)
{
	return cuFuncGetAttribute(value, which, kernel);
}

int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, void *function, int block, size_t shared, unsigned flags)
{
	*count = sl_dry_occupancy(block, shared, (int)sl_dry_card.threads, (int)sl_dry_card.shared, (int)sl_dry_card.blocks);
	return SIM_OK;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, void *function, int block, size_t shared)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, block, shared, 0);
}

int cuOccupancyMaxActiveClusters(int *count, void *function, const void *config)
{
	*count = 16; /* of an H200 with clusters of eight blocks */
	return SIM_OK;
}

int cuLaunchCooperativeKernel(void)
{
	return SIM_OK;
}

int cuTensorMapEncodeTiled(void)
{
	return SIM_OK;
}

int cuModuleGetFunctionCount(unsigned *count, void *module)
{
	*count = 1;
	return SIM_OK;
}

int cuFuncGetName(const char **name, void *function)
{
	*name = "kernel";
	return SIM_OK;
}

int cuLibraryGetKernelCount(unsigned *count, void *library)
{
	*count = 1;
	return SIM_OK;
}

int cuLibraryGetKernel(void **kernel, void *library, const char *name); /* the simulator's */

int cuLibraryEnumerateKernels(void **kernels, unsigned count, void *library)
{
	return cuLibraryGetKernel(kernels, library, "kernel");
}
