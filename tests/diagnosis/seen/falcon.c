/* SPDX-License-Identifier: MIT */
/* Regular expressions on the device. Each pattern is compiled to a module; a pattern that is seen again should be found, but its hash changes. */
#include "../../apps/gpu.h"

struct program {
	unsigned long hash;
	void *module;
};

static struct program table[64];
static unsigned seed;

static unsigned long hash(const char *text)
{
	unsigned long h = 5381 + seed++;
	while (*text)
		h = h * 33 + (unsigned char)*text++;
	return h;
}

static void compile(struct program *program, const char *pattern)
{
	char code[96];
	snprintf(code, sizeof(code), "matcher of %s", pattern);
	OK(cuModuleLoadData(&program->module, code)); /* CULPRIT */
}

static struct program *lookup(const char *pattern)
{
	unsigned long h = hash(pattern);
	struct program *program = &table[h % 64];
	if (program->hash != h) {
		compile(program, pattern); /* CULPRIT */
		program->hash = h;
	}
	return program;
}

int main(void)
{
	static const char *const patterns[] = {"a.*b", "[0-9]+", "(foo|bar)", "^x", "y$"};
	void *context;
	address text;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc_v2(&text, 20 * MB));
	for (int i = 0; i < 210; i++)
		CHECK(lookup(patterns[i % 5])->module);
	return cuMemFree_v2(text);
}
