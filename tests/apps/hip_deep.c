/* SPDX-License-Identifier: MIT */
/* hip_deep: virtual memory, pools, arrays and a reset through HIP. */
#include "gpu.h"

int hipMemCreate(void **, size_t, const struct memory_prop *, unsigned long long);
int hipMemRelease(void *);
int hipMemAddressReserve(void **, size_t, size_t, void *, unsigned long long);
int hipMemAddressFree(void *, size_t);
int hipMemMap(void *, size_t, size_t, void *, unsigned long long);
int hipMemUnmap(void *, size_t);
int hipMemPoolCreate(void **, const struct pool_props *);
int hipMemPoolDestroy(void *);
int hipMemPoolTrimTo(void *, size_t);
int hipMallocFromPoolAsync(void **, size_t, void *, void *);
int hipFreeAsync(void *, void *);
int hipDeviceSynchronize(void);
int hipDeviceReset(void);
int hipMallocArray(void **, const struct channels *, size_t, size_t, unsigned);
int hipFreeArray(void *);
int hipHostRegister(void *, size_t, unsigned);
int hipHostUnregister(void *);

int main(void)
{
	struct memory_prop prop = {.type = 1, .location = {1, 0}};
	struct pool_props props = {.alloc_type = 1, .location = {1, 0}};
	struct channels channels = {32, 0, 0, 0, 2};
	static char own[8192];
	void *handle, *at, *pool, *p, *array;
	OK(hipMalloc(&p, MB));
	OK(hipMemAddressReserve(&at, 8 * MB, 0, NULL, 0));
	OK(hipMemCreate(&handle, 4 * MB, &prop, 0));
	OK(hipMemMap(at, 4 * MB, 0, handle, 0));
	OK(hipMemRelease(handle));
	OK(hipMemUnmap(at, 4 * MB)); /* the last reference was the mapping */
	OK(hipMemAddressFree(at, 8 * MB));
	OK(hipMemPoolCreate(&pool, &props));
	OK(hipMallocFromPoolAsync(&p, 3 * MB, pool, NULL));
	OK(hipFreeAsync(p, NULL));
	OK(hipDeviceSynchronize());
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipMemPoolDestroy(pool));
	OK(hipMallocArray(&array, &channels, 256, 16, 0));
	OK(hipFreeArray(array));
	OK(hipHostRegister(own, sizeof(own), 0));
	OK(hipHostUnregister(own));
	OK(hipDeviceReset());
	OK(hipMalloc(&p, 2 * MB));
	return 0;
}
