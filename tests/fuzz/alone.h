/* SPDX-License-Identifier: MIT */
/* Without libFuzzer a target mutates its seeds by itself: a short test of what scripts/fuzz-* run for long.  A target includes it. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static uint64_t alone_random(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static void alone_fuzz(const char *path, unsigned rounds)
{
	static uint8_t seed[4 << 20], bytes[sizeof(seed)];
	FILE *file = fopen(path, "re");
	size_t size = file ? fread(seed, 1, sizeof(seed), file) : 0;

	if (!size) {
		printf("%s is empty or missing\n", path);
		exit(1);
	}
	fclose(file);
	for (unsigned i = 0; i <= rounds; i++) {
		size_t cut = i % 4 == 3 ? alone_random() % size : size;

		memcpy(bytes, seed, size);
		for (unsigned n = i ? 1 + alone_random() % 8 : 0; n; n--)
			bytes[alone_random() % size] = (uint8_t)(alone_random() % 3 ? alone_random() : 0xff * (alone_random() & 1));
		LLVMFuzzerTestOneInput(bytes, cut);
	}
}

/* main's work for PROGRAM ROUNDS SEED...; returns its exit status. */
static int alone_main(int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		alone_fuzz(argv[i], (unsigned)atoi(argv[1]));
	return argc < 3;
}
