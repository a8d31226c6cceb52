/* SPDX-License-Identifier: MIT */
#include "agent/file/own_stack.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "agent/pages.h"
#include "common/base.h"

#define STACK_BYTES (256u << 10) /* of address space; memory as far as it is used */
#define GUARD_BYTES (64u << 10)	 /* the largest page of any machine */

static uint8_t *stack;

bool sl_own_stack_prepare(void)
{
	if (!stack && (stack = sl_pages_map(STACK_BYTES)))
		mprotect(stack, GUARD_BYTES, PROT_NONE);
	return stack != NULL;
}

/* Never inlined, and with a frame of its own: debuggers find the way back from the other stack by the frame pointer. */
SL_NOINLINE void sl_own_stack_run(void (*work)(void))
{
	uint8_t *top = stack + STACK_BYTES;
	const void *frame = __builtin_frame_address(0);

#if defined(__x86_64__)
	__asm__ volatile("movq %%rsp, %%rbx\n\tmovq %0, %%rsp\n\tcall *%1\n\tmovq %%rbx, %%rsp"
			 : "+r"(top), "+r"(work)
			 : "r"(frame)
			 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3",
			   "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
			   "cc", "memory");
#elif defined(__aarch64__)
	__asm__ volatile("mov x19, sp\n\tmov sp, %0\n\tblr %1\n\tmov sp, x19"
			 : "+r"(top), "+r"(work)
			 : "r"(frame)
			 : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
			   "x16", "x17", "x18", "x19", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10",
			   "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25",
			   "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
#else
#error "the way to another stack is not known for this machine"
#endif
}
