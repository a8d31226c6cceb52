/* SPDX-License-Identifier: MIT */
/* The compiled BPF programs, in stormlog-attach itself.  A file of its own, so that it is made again when they change. */
	.section .rodata
	.balign 16
	.globl sl_probes_programs, sl_probes_programs_end
sl_probes_programs:
	.incbin SL_PROGRAMS
sl_probes_programs_end:
	.byte 0
	.section .note.GNU-stack, "", @progbits
