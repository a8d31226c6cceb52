/* SPDX-License-Identifier: MIT */
/*
 * hsa: memory asked of HSA itself, as OpenCL and AMD's own libraries do, beside HIP's; on two devices.
 * hsa again: HSA is shut down and begun anew, where the same handle is the other device's pool.
 */
#include "gpu.h"

#include <unistd.h>

int hsa_init(void);
int hsa_shut_down(void);
int hsa_amd_memory_pool_allocate(uint64_t, size_t, uint32_t, void **);
int hsa_amd_memory_pool_free(void *);
int hsa_memory_allocate(uint64_t, size_t, void **);
int hsa_memory_free(void *);
int hsa_amd_vmem_address_reserve(void **, size_t, uint64_t, uint64_t);
int hsa_amd_vmem_address_reserve_align(void **, size_t, uint64_t, uint64_t, uint64_t);
int hsa_amd_vmem_address_free(void *, size_t);
int hsa_amd_vmem_handle_create(uint64_t, size_t, int, uint64_t, uint64_t *);
int hsa_amd_vmem_handle_release(uint64_t);
int hsa_amd_vmem_retain_alloc_handle(uint64_t *, void *);
int hsa_amd_vmem_map(void *, size_t, size_t, uint64_t, uint64_t);
int hsa_amd_vmem_unmap(void *, size_t);
int hsa_amd_vmem_set_access(void *, size_t, const void *, size_t);
int hsa_amd_vmem_export_shareable_handle(int *, uint64_t, uint64_t);
int hsa_amd_vmem_import_shareable_handle(int, uint64_t *);

enum { ON_DEVICE = 0x100, ON_SECOND = 0x101, ON_HOST = 0x200 /* the simulator's pools */, OUT_OF_RESOURCES = 0x1008 };

static void virtual(void)
{
	void *at, *there;
	uint64_t handle, same, imported;
	int fd, access = 0;
	OK(hsa_amd_vmem_address_reserve(&at, 8 * MB, 0, 0));
	OK(hsa_amd_vmem_address_reserve_align(&there, 8 * MB, 0, 4 * MB, 0));
	OK(hsa_amd_vmem_handle_create(ON_SECOND, 4 * MB, 1, 0, &handle));
	OK(hsa_amd_vmem_map(at, 4 * MB, 0, handle, 0));
	OK(hsa_amd_vmem_map(there, 2 * MB, 2 * MB, handle, 0));
	OK(hsa_amd_vmem_set_access(at, 4 * MB, &access, 1));
	OK(hsa_amd_vmem_retain_alloc_handle(&same, at));
	CHECK(same == handle);
	OK(hsa_amd_vmem_handle_release(handle));
	OK(hsa_amd_vmem_export_shareable_handle(&fd, handle, 0));
	OK(hsa_amd_vmem_import_shareable_handle(fd, &imported));
	close(fd);
	OK(hsa_amd_vmem_handle_release(handle));
	OK(hsa_amd_vmem_unmap(at, 4 * MB));
	OK(hsa_amd_vmem_unmap(there, 2 * MB)); /* the last mapping */
	OK(hsa_amd_vmem_map(at, 4 * MB, 0, imported, 0));
	OK(hsa_amd_vmem_unmap(at, 4 * MB));
	OK(hsa_amd_vmem_handle_release(imported));
	OK(hsa_amd_vmem_address_free(at, 8 * MB));
	OK(hsa_amd_vmem_address_free(there, 8 * MB));
	OK(hsa_amd_vmem_handle_create(ON_DEVICE, 6 * MB, 1, 0, &handle)); /* stays */
}

static void again(void)
{
	void *p;
	OK(hsa_init());
	OK(hsa_init());
	OK(hsa_amd_memory_pool_allocate(ON_DEVICE, MB, 0, &p));
	OK(hsa_amd_memory_pool_free(p));
	OK(hsa_shut_down());
	OK(hsa_amd_memory_pool_allocate(ON_DEVICE, MB, 0, &p));
	OK(hsa_amd_memory_pool_free(p));
	OK(hsa_shut_down()); /* the last reference */
	OK(hsa_init());
	OK(hsa_amd_memory_pool_allocate(ON_DEVICE, 3 * MB, 0, &p)); /* stays, on the second */
}

int main(int argc, char **argv)
{
	void *p, *q, *host;
	if (argc > 1) {
		again();
		return 0;
	}
	OK(hipMalloc(&p, MB));
	OK(hsa_init());
	OK(hsa_amd_memory_pool_allocate(ON_DEVICE, 2 * MB, 0, &q));
	OK(hsa_amd_memory_pool_allocate(ON_HOST, 4096, 0, &host));
	OK(hsa_amd_memory_pool_free(host));
	OK(hsa_amd_memory_pool_free(q));
	OK(hsa_amd_memory_pool_allocate(ON_DEVICE, 3 * MB, 0, &q)); /* stays */
	OK(hsa_amd_memory_pool_allocate(ON_SECOND, 5 * MB, 0, &q)); /* stays */
	CHECK(hsa_amd_memory_pool_allocate(ON_SECOND, 1ull << 50, 0, &q) == OUT_OF_RESOURCES);
	OK(hsa_memory_allocate(ON_SECOND, 7 * MB, &q));
	OK(hsa_memory_free(q));
	virtual();
	OK(hipFree(p));
	return 0;
}
