/* SPDX-License-Identifier: MIT */
/*
 * dlsym(handle, name) and dlvsym(handle, name, version): ask sl_lookup_filter (lookup.h), then return its answer
 * or jump to the real function with registers and return address as they came.
 */
	.macro enter name		/* three arguments kept; the stack is aligned for a call; the caller stands at 24(%rsp) */
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	.endm

	.macro restore
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	.endm

	.macro look_up name
	enter	\name
	.ifc \name, dlsym
	xorl	%edx, %edx
	.endif
	movq	24(%rsp), %rcx
	call	sl_lookup_filter
	movq	%rdx, %r11
	restore
	testq	%r11, %r11
	jz	1f
	jmp	*%r11
1:	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

/* dlopen(path, flags) and dlmopen(namespace, path, flags): looked at, and passed on. */
	.macro open_with name, ask
	enter	\name
	.ifc \name, dlopen
	movl	%esi, %edi
	.endif
	call	\ask
	restore
	jmp	*%rax
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.text
	open_with dlopen, sl_lookup_opening
	open_with dlmopen, sl_lookup_opening_in
	look_up dlsym
	look_up dlvsym

	.section .note.GNU-stack, "", @progbits
