/* SPDX-License-Identifier: MIT */
/* plugin_host [--deepbind|--dlmopen] PLUGIN.so...: opens each plugin RTLD_LOCAL, or in that way, beside the program's own runtime. */
#include "gpu.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
	void *mine, *theirs[16];
	int first = argc > 1 && !strncmp(argv[1], "--", 2) ? 2 : 1;
	int deep = first == 2 && !strcmp(argv[1], "--deepbind") ? RTLD_DEEPBIND : 0;
	int apart = first == 2 && !strcmp(argv[1], "--dlmopen");
	CHECK(argc > first && argc <= 16);
	OK(cudaMalloc(&mine, MB));
	for (int i = first; i < argc; i++) {
		void *library = apart ? dlmopen(LM_ID_NEWLM, argv[i], RTLD_NOW) : dlopen(argv[i], RTLD_NOW | RTLD_LOCAL | deep);
		if (!library)
			fprintf(stderr, "%s\n", dlerror());
		CHECK(library);
		void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_allocate");
		void (*release)(void *) = (void (*)(void *))dlsym(library, "plugin_release");
		CHECK(allocate && release);
		release(allocate(10 * MB));
		theirs[i] = allocate((i - first + 1) * 2 * MB);
		if (argc - first == 1) { /* thread-specific keys of several namespaces collide even without a tracer */
			const void *(*swap)(const void *) = (const void *(*)(const void *))dlsym(library, "plugin_swap");

			CHECK(!swap(&mine));
			CHECK(swap(NULL) == &mine);
		}
		CHECK(apart || theirs[i] != mine); /* another namespace has another driver, which may hand out the same address */
	}
	OK(cudaFree(mine));
	return 0;
}
