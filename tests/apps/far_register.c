/* SPDX-License-Identifier: MIT */
/*
 * far_register: allocates until it is killed, from functions whose unwind tables say that registers of ridiculous numbers are saved; says "ready"
 * when it has begun.  A reader that keeps a table of all registers takes 1 GiB for each function.
 */
#include "gpu.h"

#include <unistd.h>

#define SAVED_REGISTER ".cfi_escape 0x05, 0x80, 0xbc, 0xc1, 0x96, 0x0b, 0x01\n" /* DW_CFA_offset_extended of 3 000 000 000 */
#define SMALLER_ONE    ".cfi_escape 0x05, 0x80, 0x8e, 0xce, 0x1c, 0x01\n"	/* of 60 000 000 */

__attribute__((noinline)) static void allocate(void)
{
	void *block;

	__asm__ volatile(SAVED_REGISTER);
	OK(cudaMalloc(&block, 4096));
	__asm__ volatile("");
}

__attribute__((noinline)) static void allocate_too(void)
{
	void *block;

	__asm__ volatile(SMALLER_ONE);
	OK(cudaMalloc(&block, 4096));
	__asm__ volatile("");
}

int main(void)
{
	OK(cudaFree(NULL));
	CHECK(write(1, "ready\n", 6) == 6);
	for (;;) {
		allocate();
		allocate_too();
		usleep(10000);
	}
}
