/* SPDX-License-Identifier: MIT */
/* blocks LIBRARY: exercises a stand-in allocator that is loaded as Python loads PyTorch, out of the global
 * scope. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int cudaMalloc(void **pointer, size_t bytes);

#ifdef HAVE_EXCEPTIONS
void throwing(void);
void catching(int (*call)(int, void (*)(void)), int passes, void (*inside)(void));
#else
/* Without a C++ compiler there are no exceptions: these passes return. */
static void throwing(void)
{
}

static void catching(int (*call)(int, void (*)(void)), int passes, void (*inside)(void))
{
	call(passes, inside);
}
#endif

static int (*backward)(int passes, void (*inside)(void));
static void (*allocate)(uintptr_t address, int64_t size);

static void again(void)
{
	backward(1, NULL);
}

/* A pass that throws inside another, which catches it and goes on. */
static void inner_thrown(void)
{
	catching(backward, 1, throwing);
	allocate(0x9000, 8);
}

int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), *pointer;
	void (*exercise)(void) = (void (*)(void))dlsym(library, "exercise");

	backward = (int (*)(int, void (*)(void)))dlsym(library, "backward");
	allocate = (void (*)(uintptr_t, int64_t))dlsym(library, "allocate");
	cudaMalloc(&pointer, 1);
	exercise();
	printf("%d\n", backward(2, NULL));
	printf("%d\n", backward(1, again));
	catching(backward, 1, throwing);
	allocate(0x8000, 8);
	backward(1, inner_thrown);
	allocate(0x8000, 8);
	return 0;
}
