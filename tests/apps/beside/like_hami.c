/* SPDX-License-Identifier: MIT */
/*
 * Like HAMi-core: dlsym hands out this library's functions for names that begin with cu and answers each look-up by RTLD_NEXT
 * once.  The driver's functions are looked up once.  Device memory is counted, and the total is a quota.
 */
#include "beside.h"

#define QUOTA (1ull << 30)

static struct block {
	address p;
	size_t size;
} blocks[1024];
static unsigned count;
static size_t held;
static int allocations;
static void *asked[100];
static unsigned asked_count;

static void *real_dlsym(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);

	if (!real)
		real = (void *(*)(void *, const char *))need(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"), "dlsym");
	return real(handle, name);
}

static void *driver(const char *name)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NODELETE), *found = real_dlsym(library, name);

	if (!found)
		found = real_dlsym(RTLD_NEXT, name);
	dlclose(library);
	return need(found, name);
}

/* The driver's function, looked up at the first call. */
static void *real(unsigned which)
{
	static const char *const names[] = {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemGetInfo_v2", "cuGetProcAddress_v2"};
	static void *found[4];

	if (!found[which])
		found[which] = driver(names[which]);
	return found[which];
}

int cuMemAlloc_v2(address *p, size_t size)
{
	int result;

	if (held + size > QUOTA)
		return 2;
	result = CALL(real(0), p, size);
	if (!result && count < 1024) {
		blocks[count++] = (struct block){*p, size};
		held += size;
		allocations++;
	}
	return result;
}

/* Frees a block that is not in the table too, as newer versions of HAMi-core do. */
int cuMemFree_v2(address p)
{
	for (unsigned i = 0; i < count; i++)
		if (blocks[i].p == p) {
			held -= blocks[i].size;
			blocks[i] = blocks[--count];
			break;
		}
	return CALL(real(1), p);
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	int result = CALL(real(2), free_bytes, total);

	*total = QUOTA;
	*free_bytes = QUOTA - held;
	return result;
}

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status);

int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(name, found, version, flags, NULL);
}

static void *own(const char *name)
{
	static void *self;
	Dl_info info;

	if (!self && dladdr((void *)real_dlsym, &info))
		self = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	return self ? real_dlsym(self, name) : NULL;
}

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status)
{
	char versioned[128];
	int unknown, result = CALL(real(3), name, found, version, flags, status ? status : &unknown);
	void *mine;

	snprintf(versioned, sizeof(versioned), "%s_v2", name);
	mine = own(versioned);
	if (!mine)
		mine = own(name);
	if (mine && !result)
		*found = mine;
	return result;
}

void *dlsym(void *handle, const char *name)
{
	void *found;

	if (handle == RTLD_NEXT) {
		found = real_dlsym(RTLD_NEXT, name);
		for (unsigned i = 0; found && i < asked_count; i++)
			if (asked[i] == found)
				return NULL; /* HAMi-core reports "recursive dlsym" */
		if (asked_count < 100)
			asked[asked_count++] = found;
		return found;
	}
	if (name[0] == 'c' && name[1] == 'u' && (found = own(name)))
		return found;
	return real_dlsym(handle, name);
}

__attribute__((destructor)) static void say(void)
{
	printf("like_hami: %d, %zu bytes\n", allocations, held);
}
