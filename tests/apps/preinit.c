/* SPDX-License-Identifier: MIT */
/* Calls before any constructor has run, and again in main. */
#include "gpu.h"

static void call(void)
{
	void *block;

	OK(cudaMalloc(&block, MB));
	OK(cudaFree(block));
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = call;

int main(void)
{
	call();
	return 0;
}
