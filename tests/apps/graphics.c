/* SPDX-License-Identifier: MIT */
/*
 * graphics cu|cuda|hip LIBRARY: buffers of a graphics API are mapped one by one and several at once.  Their address is asked for
 * once, twice or never.  One is unregistered while mapped, one is left mapped when the device is reset.
 */
#include "gpu.h"

#include <dlfcn.h>
#include <stdbool.h>

enum { RESOURCES = 5, NOT_MAPPED = 211 };

static void *library;
static const char *prefix;

static void *find(const char *name)
{
	char full[64];
	snprintf(full, sizeof(full), "%s%s", prefix, name);
	void *found = dlsym(library, full);
	CHECK(found);
	return found;
}

/* The call must say that nothing is mapped; a runtime keeps that error for GetLastError too. */
static void expect_not_mapped(int result)
{
	CHECK(result == NOT_MAPPED);
	if (strcmp(prefix, "cu")) {
		int (*last)(void) = find("GetLastError");
		CHECK(last() == NOT_MAPPED);
	}
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	prefix = argv[1];
	library = dlopen(argv[2], RTLD_NOW);
	CHECK(library);
	bool driver = !strcmp(prefix, "cu");
	int (*map)(unsigned, void **, void *) = find("GraphicsMapResources"),
					   (*unmap)(unsigned, void **, void *) = find("GraphicsUnmapResources");
	int (*where)(void **, size_t *, void *) =
		find(driver ? "GraphicsResourceGetMappedPointer_v2" : "GraphicsResourceGetMappedPointer");
	int (*add)(void **, unsigned, unsigned) = find("GraphicsGLRegisterBuffer"),
				      (*drop)(void *) = find("GraphicsUnregisterResource");
	void *resource[RESOURCES], *p, *q, *context;
	size_t size;

	if (driver) {
		int (*init)(unsigned) = find("Init"), (*retain)(void **, int) = find("DevicePrimaryCtxRetain"),
		    (*set)(void *) = find("CtxSetCurrent");
		OK(init(0));
		OK(retain(&context, 0));
		OK(set(context));
	}
	for (int i = 0; i < RESOURCES; i++)
		OK(add(&resource[i], i + 1, 0));
	expect_not_mapped(where(&p, &size, resource[0]));
	for (int frame = 0; frame < 3; frame++) {
		OK(map(RESOURCES, resource, NULL));
		OK(where(&p, &size, resource[0]));
		OK(where(&q, &size, resource[0])); /* the same memory */
		CHECK(p == q && size == MB);
		for (int i = 1; i < RESOURCES - 1; i++) /* the last one is mapped and not asked for */
			OK(where(&p, &size, resource[i]));
		OK(unmap(RESOURCES, resource, NULL));
		expect_not_mapped(unmap(RESOURCES, resource, NULL));
	}
	OK(map(1, resource, NULL));
	OK(where(&p, &size, resource[0]));
	OK(unmap(1, resource, NULL));
	OK(drop(resource[0])); /* nothing is mapped */
	OK(map(2, resource + 1, NULL));
	OK(where(&p, &size, resource[1]));
	OK(drop(resource[1]));
	OK(where(&p, &size, resource[2])); /* goes with its context */
	if (driver) {
		int (*reset)(int) = find("DevicePrimaryCtxReset_v2");
		OK(reset(0));
	} else {
		int (*reset)(void) = find("DeviceReset");
		OK(reset());
	}
	return 0;
}
