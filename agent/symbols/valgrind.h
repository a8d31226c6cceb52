/* SPDX-License-Identifier: MIT */
/* Valgrind, which judges what a system call is given and what a library does as if the program did it. */
#ifndef AGENT_SYMBOLS_VALGRIND_H
#define AGENT_SYMBOLS_VALGRIND_H

#include <stdbool.h>
#include <stdint.h>

/* True: the program runs below it.  It reads these instructions, which do nothing, as a question (valgrind.h). */
static inline bool sl_valgrind_present(void)
{
#ifdef __x86_64__
	const volatile uint64_t question[6] = {0x1001}; /* RUNNING_ON_VALGRIND */
	uint64_t answer = 0;

	__asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(question)
			 : "cc", "memory");
	return answer;
#else
	return false;
#endif
}

#endif
