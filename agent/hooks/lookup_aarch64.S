/* SPDX-License-Identifier: MIT */
/*
 * dlsym(handle, name) and dlvsym(handle, name, version): ask sl_lookup_filter (lookup.h), then return its answer
 * or jump to the real function with registers and return address as they came.
 */
	.macro enter name		/* three arguments and the caller in x30 kept */
	.globl	\name
	.type	\name, %function
	.p2align 4
\name:
	.cfi_startproc
	hint	#34			/* bti c */
	stp	x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset 29, -48
	.cfi_offset 30, -40
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	str	x2, [sp, #32]
	.endm

	.macro restore
	ldp	x0, x1, [sp, #16]
	ldr	x2, [sp, #32]
	ldp	x29, x30, [sp], #48
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	.endm

	.macro look_up name
	enter	\name
	.ifc \name, dlsym
	mov	x2, #0
	.endif
	mov	x3, x30
	bl	sl_lookup_filter
	mov	x16, x1
	mov	x9, x0
	restore
	cbz	x16, 1f
	br	x16
1:	mov	x0, x9
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

/* dlopen(path, flags) and dlmopen(namespace, path, flags): looked at, and passed on. */
	.macro open_with name, ask
	enter	\name
	.ifc \name, dlopen
	mov	w0, w1
	.endif
	bl	\ask
	mov	x16, x0
	restore
	br	x16
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.text
	open_with dlopen, sl_lookup_opening
	open_with dlmopen, sl_lookup_opening_in
	look_up dlsym
	look_up dlvsym

	.section .note.GNU-stack, "", %progbits
