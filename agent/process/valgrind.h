/* SPDX-License-Identifier: MIT */
/* Tells valgrind's tools to pass over what the agent does, which they would report as errors of the program. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* It reads these instructions, which do nothing, as a question (valgrind.h); 0: nobody answers. */
static __attribute__((noinline)) uint64_t sl_valgrind_ask(uint64_t request, uint64_t address, uint64_t bytes)
{
#ifdef __x86_64__
	const volatile uint64_t question[6] = {request, address, bytes};
	uint64_t answer = 0;

	__asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(question)
			 : "cc", "memory");
	return answer;
#else
	return 0;
#endif
}

/* True: the program runs below it. */
static inline bool sl_valgrind_present(void)
{
	return sl_valgrind_ask(0x1001, 0, 0); /* RUNNING_ON_VALGRIND */
}

/* more: 1 ends valgrind's error reports for this thread, -1 begins them again. */
static inline void sl_valgrind_hush(int64_t more)
{
	sl_valgrind_ask(0x1801, (uint64_t)more, 0); /* VG_USERREQ__CHANGE_ERR_DISABLEMENT */
}

/* Threads share this memory without locks: Helgrind and DRD need not look at it.  DHAT would warn of these requests. */
static inline void sl_valgrind_share(const void *memory, uint64_t bytes)
{
	for (char **variable = sl_valgrind_present() ? __environ : NULL; variable && *variable; variable++)
		if (strstr(*variable, "vgpreload_dhat")) /* LD_PRELOAD */
			return;
	sl_valgrind_ask(0x48470127, (uintptr_t)memory, bytes); /* _VG_USERREQ__HG_ARANGE_MAKE_UNTRACKED */
	sl_valgrind_ask(0x44520002, (uintptr_t)memory, bytes); /* VG_USERREQ__DRD_START_SUPPRESSION */
}
