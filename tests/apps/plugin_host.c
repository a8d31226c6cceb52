/* SPDX-License-Identifier: MIT */
/* plugin_host PLUGIN.so...: each opened RTLD_LOCAL, next to a runtime of the program's own. */
#include "gpu.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
	void *mine, *theirs[16];
	CHECK(argc > 1 && argc <= 16);
	OK(cudaMalloc(&mine, MB));
	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		if (!library)
			fprintf(stderr, "%s\n", dlerror());
		CHECK(library);
		void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_allocate");
		void (*release)(void *) = (void (*)(void *))dlsym(library, "plugin_release");
		CHECK(allocate && release);
		release(allocate(10 * MB));
		theirs[i] = allocate(i * 2 * MB);
		CHECK(theirs[i] != mine);
	}
	OK(cudaFree(mine));
	return 0;
}
