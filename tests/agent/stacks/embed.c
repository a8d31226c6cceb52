/* SPDX-License-Identifier: MIT */
/* embed LIBPYTHON ARGUMENT...: runs the interpreter embedded in a program, from the shared library. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	int (*run)(int, char **) = library ? (int (*)(int, char **))dlsym(library, "Py_BytesMain") : NULL;

	if (!run) {
		fprintf(stderr, "embed: %s\n", argc > 1 ? dlerror() : "which library?");
		return 77;
	}
	argv[1] = argv[0];
	return run(argc - 1, argv + 1);
}
