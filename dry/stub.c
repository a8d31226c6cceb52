/* SPDX-License-Identifier: MIT */
/*
 * A library whose functions do nothing and say that they did it. -DSTUBS names the table of its functions (stubs/). A row lists
 * the arguments that receive something. Their numbers count those in general registers or on the stack (System V ABI of x86-64).
 * AArch64's agrees up to eight. Functions that must do more are in a file of their own and replace the weak ones here.
 */
#include <stdint.h>
#include <stdlib.h>

enum { HANDLE_BYTES = 4096 };

#define MARK 0x676f6c6d726f7473 /* "stormlog", the first bytes of each handle */

#define HANDLE(n) (*(uint64_t **)a##n = make_handle()),
#define FREE	  end_handle((uint64_t *)a0),
#define PLAN(n)	  (*(int *)a##n = __atomic_add_fetch(&plans, 1, __ATOMIC_RELAXED)),
#define INT(n)	  (a##n ? *(int *)a##n = 0 : 0),
#define SIZE(n)	  (a##n ? *(size_t *)a##n = 0 : 0),

__attribute__((unused)) static int plans; /* cuFFT's handles are numbers */

__attribute__((unused)) static uint64_t *make_handle(void)
{
	uint64_t *handle = calloc(1, HANDLE_BYTES);

	if (handle)
		*handle = MARK;
	return handle;
}

/* NVIDIA's functions refuse what is no handle, or none any more. */
__attribute__((unused)) static void end_handle(uint64_t *handle)
{
	if (!handle || *handle != MARK)
		return;
	*(volatile uint64_t *)handle = 0; /* a second call finds no handle */
	free(handle);
}

#define STUB(name, writes)                                                                                                         \
	__attribute__((weak)) long name(long a0, long a1, long a2, long a3, long a4, long a5, long a6, long a7, long a8, long a9,  \
					long a10, long a11, long a12, long a13, long a14, long a15, long a16, long a17, long a18,  \
					long a19)                                                                                  \
	{                                                                                                                          \
		(void)(writes 0);                                                                                                  \
		return 0;                                                                                                          \
	}
#include STUBS
