/* SPDX-License-Identifier: MIT */
/*
 * Like nvshare: exports dlsym under both of glibc's versions and finds the real one by dlvsym(RTLD_NEXT); opens the driver by
 * dlopen; makes managed memory where device memory is asked for.
 */
#include "beside.h"

static int allocations;

static void *real_dlsym(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);

	if (!real)
		real = (void *(*)(void *, const char *))need(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"), "dlsym");
	return real(handle, name);
}

static void *driver(const char *name)
{
	return need(real_dlsym(dlopen("libcuda.so.1", RTLD_LAZY), name), name);
}

int cuMemAlloc_v2(address *p, size_t size)
{
	allocations++;
	return CALL(driver("cuMemAllocManaged"), p, size, 1u);
}

int cuMemFree_v2(address p)
{
	return CALL(driver("cuMemFree_v2"), p);
}

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status);

int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(name, found, version, flags, NULL);
}

static void *own(const char *name)
{
	return !strcmp(name, "cuMemAlloc_v2")	      ? (void *)cuMemAlloc_v2
	       : !strcmp(name, "cuMemFree_v2")	      ? (void *)cuMemFree_v2
	       : !strcmp(name, "cuGetProcAddress")    ? (void *)cuGetProcAddress
	       : !strcmp(name, "cuGetProcAddress_v2") ? (void *)cuGetProcAddress_v2
						      : NULL;
}

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status)
{
	int unknown;

	if (status)
		*status = 0;
	if (!strcmp(name, "cuMemAlloc"))
		*found = (void *)cuMemAlloc_v2;
	else if (!strcmp(name, "cuMemFree"))
		*found = (void *)cuMemFree_v2;
	else if (own(name))
		*found = own(name);
	else
		return CALL(driver("cuGetProcAddress_v2"), name, found, version, flags, status ? status : &unknown);
	return 0;
}

void *dlsym_old(void *handle, const char *name);
void *dlsym_new(void *handle, const char *name);

void *dlsym_old(void *handle, const char *name)
{
	return own(name) ? own(name) : real_dlsym(handle, name);
}

void *dlsym_new(void *handle, const char *name)
{
	return dlsym_old(handle, name);
}

__asm__(".symver dlsym_old, dlsym@GLIBC_2.2.5");
__asm__(".symver dlsym_new, dlsym@@GLIBC_2.34");

__attribute__((destructor)) static void say(void)
{
	printf("like_nvshare: %d\n", allocations);
}
