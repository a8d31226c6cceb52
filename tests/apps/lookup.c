/* SPDX-License-Identifier: MIT */
/* The driver reached without linking it: dlopen, dlsym, and cuGetProcAddress in both forms. */
#include "gpu.h"

#include <dlfcn.h>

static void *library;

static void *find(const char *name)
{
	void *f = dlsym(library, name);
	CHECK(f != NULL);
	return f;
}

int main(void)
{
	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	CHECK(library);
	__typeof__(&cuGetProcAddress) get = (__typeof__(get))find("cuGetProcAddress");
	__typeof__(&cuGetProcAddress_v2) get2 = (__typeof__(get2))find("cuGetProcAddress_v2");
	OK(((__typeof__(&cuInit))find("cuInit"))(0));
	void *ctx;
	OK(((__typeof__(&cuDevicePrimaryCtxRetain))find("cuDevicePrimaryCtxRetain"))(&ctx, 0));
	OK(((__typeof__(&cuCtxSetCurrent))find("cuCtxSetCurrent"))(ctx));

	__typeof__(&cuMemAlloc_v2) alloc1, alloc2, alloc3 = (__typeof__(alloc3))find("cuMemAlloc_v2");
	__typeof__(&cuMemFree_v2) free1, free2;
	int status = -1;
	OK(get("cuMemAlloc", (void **)&alloc1, 11030, 0));
	OK(get("cuMemFree", (void **)&free1, 11030, 0));
	OK(get2("cuMemAlloc", (void **)&alloc2, 12000, 0, &status));
	CHECK(status == 0);
	OK(get2("cuMemFree", (void **)&free2, 12000, 0, NULL));
	OK(get2("cuNoSuchThing", (void **)&ctx, 12000, 0, &status));
	CHECK(ctx == NULL && status == 1);
	CHECK(get("cuNoSuchThing", &ctx, 11030, 0) == 500);

	address a, b, c;
	OK(alloc1(&a, MB));
	OK(alloc2(&b, 2 * MB));
	OK(alloc3(&c, 3 * MB));
	OK(free2(a));
	OK(free1(b));
	return 0;
}
