/* SPDX-License-Identifier: MIT */
/* hsa: memory asked of HSA itself, as OpenCL and AMD's own libraries do, beside HIP's. */
#include "gpu.h"

int hsa_init(void);
int hsa_amd_memory_pool_allocate(uint64_t, size_t, uint32_t, void **);
int hsa_amd_memory_pool_free(void *);

enum { ON_DEVICE = 0x100, ON_HOST = 0x200 }; /* the simulator's pools */

int main(void)
{
	void *p, *q, *host;
	OK(hipMalloc(&p, MB));
	OK(hsa_init());
	OK(hsa_amd_memory_pool_allocate(ON_DEVICE, 2 * MB, 0, &q));
	OK(hsa_amd_memory_pool_allocate(ON_HOST, 4096, 0, &host));
	OK(hsa_amd_memory_pool_free(host));
	OK(hsa_amd_memory_pool_free(q));
	OK(hsa_amd_memory_pool_allocate(ON_DEVICE, 3 * MB, 0, &q)); /* stays */
	OK(hipFree(p));
	return 0;
}
