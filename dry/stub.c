/* SPDX-License-Identifier: MIT */
/*
 * A library whose functions do nothing and say that they did it. -DSTUBS names the table of its functions (stubs/). A row lists
 * which argument receives what, by its number among those that are passed in general registers or on the stack (System V ABI of
 * x86-64; AArch64's agrees up to eight). Functions that must do more are in a file of their own and replace the weak ones here.
 */
#include <stdlib.h>

enum { HANDLE_BYTES = 4096 };

#define HANDLE(n) (*(void **)a##n = calloc(1, HANDLE_BYTES)),
#define FREE	  free((void *)a0),
#define PLAN(n)	  (*(int *)a##n = __atomic_add_fetch(&plans, 1, __ATOMIC_RELAXED)),
#define INT(n)	  (a##n ? *(int *)a##n = 0 : 0),
#define SIZE(n)	  (a##n ? *(size_t *)a##n = 0 : 0),

__attribute__((unused)) static int plans; /* cuFFT's handles are numbers */

#define STUB(name, writes)                                                                                                         \
	__attribute__((weak)) long name(long a0, long a1, long a2, long a3, long a4, long a5, long a6, long a7, long a8, long a9,  \
					long a10, long a11, long a12, long a13, long a14, long a15, long a16, long a17, long a18,  \
					long a19)                                                                                  \
	{                                                                                                                          \
		(void)(writes 0);                                                                                                  \
		return 0;                                                                                                          \
	}
#include STUBS
