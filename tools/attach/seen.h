/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the BPF programs hand over: calls that have returned, with their arguments as they lay in registers and on the stack. */
#pragma once

#include <linux/types.h>

#define SL_SEEN_REGISTERS 6
#define SL_SEEN_STACK	  8 /* words of arguments on the stack */
#define SL_SEEN_WORDS	  (SL_SEEN_REGISTERS + SL_SEEN_STACK)
#define SL_SEEN_COPIES	  6   /* arguments that point to data */
#define SL_SEEN_COPY	  256 /* bytes copied of each */
#define SL_SEEN_DEPTH	  8   /* depth of nested calls that are followed */
#define SL_SEEN_APIS	  2048
#define SL_SEEN_LINES	  128
#define SL_SEEN_STATES	  256	/* most thread states that are searched for the calling thread's */
#define SL_SEEN_TASK	  16384 /* bytes of the kernel's structure of a thread that are searched */
#define SL_SEEN_SLOT_BITS 14

/* A probe's cookie: which call it is, and the process by its id in the collector's namespace. */
#define SL_SEEN_COOKIE(pid, api)   ((__u64)(pid) << 32 | (api))
#define SL_SEEN_COOKIE_PID(cookie) ((__u32)((cookie) >> 32))

/* Which of a call's arguments point to data, and how much of it is to be copied; whether its stack is taken if it succeeds. */
struct sl_seen_row {
	__u16 copies, stack;
	struct {
		__u16 word, bytes; /* index into words; at most SL_SEEN_COPY */
	} copy[SL_SEEN_COPIES];
};

/* First word of a record. */
enum sl_seen_kind { SL_SEEN_CALL, SL_SEEN_PYTHON, SL_SEEN_NATIVE, SL_SEEN_DEATH };

/* Most calls have few copies, and thus short records. */
#define SL_SEEN_FEW	      2
#define SL_SEEN_BYTES(copies) (sizeof(struct sl_seen) - (SL_SEEN_COPIES - (copies)) * SL_SEEN_COPY)

struct sl_seen {
	__u32 kind, api;
	__u64 begin_ns, end_ns;
	__u64 words[SL_SEEN_WORDS];
	__u64 number, outer; /* call numbers of the thread; outer 0: in no other call */
	__u64 caller;	     /* the address that it returns to */
	__s64 result;
	__u32 pid, tid; /* tid: as the node numbers it */
	__u64 cgroup;	/* number of the thread's cgroup in the hierarchy of version 2 */
	__u64 copies;
	__u8 data[SL_SEEN_COPIES][SL_SEEN_COPY]; /* SL_SEEN_FEW are handed over, or all */
};

/* Where an interpreter keeps its frames: python_layout.h has the meanings.  Addresses, then offsets in bytes. */
struct sl_seen_python {
	__u64 threads;	  /* the pointer to the first thread state */
	__u64 finalizing; /* the pointer to the thread state that shuts Python down */
	__u32 thread_id, tstate, current, through_cframe;
	__u32 frame_bytes; /* of a frame, as far as it is read */
	__u32 previous, code, instr, entry, style;
	__u32 cframe, cframe_previous;
	__u32 function, file, table; /* in a code object */
	__u32 thread_pointer;	     /* in the kernel's structure of a thread: the address that pthread_self returns */
	__u32 is_known;		     /* 0: there is no interpreter, or it is not known */
};

/* A process, by its id in cookies.  Not watched: new calls are ignored, except those inside others. */
struct sl_seen_process {
	__u64 watched;
	struct sl_seen_python python;
};

#define SL_SEEN_FRAME_BYTES 128

#define SL_SEEN_RING	(1u << 24)
#define SL_SEEN_COPIED	16384 /* bytes of a native stack: whole pages */
#define SL_SEEN_PAGE	4096
#define SL_SEEN_ANCHORS 8

/* The native stack of a call that returns, as it lies in memory; the call's own record follows. */
struct sl_seen_native {
	__u32 kind, bytes; /* how much of the stack was copied */
	__u64 number;	   /* of the call */
	__u32 pid, tid;
	__u64 loads; /* times that the process has begun or ended to load or unload libraries */
	__u64 bx, bp, r12, r13, r14, r15, sp, ip;
	__u64 anchor[SL_SEEN_ANCHORS]; /* addresses that lie in frames of Python's evaluation loop; 0: no more */
	__u8 stack[SL_SEEN_COPIED];    /* from sp on */
};

/*
 * A Python frame as it was found.  code: bits 0 to 42 are the address of its code object, which is a multiple of 16.  Bit 43: C
 * entered the loop with this frame.  The bits above count the dead code objects of the same slot, which separates two objects of
 * one address.
 */
struct sl_seen_line {
	__u64 code, instr;
};

#define SL_SEEN_LINE(code, deaths) ((code) >> 4 | (__u64)(deaths) << 44)
#define SL_SEEN_LINE_CODE(line)	   (((line) & ((1ull << 43) - 1)) << 4)
#define SL_SEEN_LINE_DEATHS(line)  ((line) >> 44) /* modulo 2^20 */
#define SL_SEEN_LINE_ENTERED	   (1ull << 43)

/* The Python stack of a call that returns; the call's own record follows. */
struct sl_seen_lines {
	__u32 kind, count;
	__u64 number; /* of the call */
	__u32 pid, tid;
	__u64 truncated;
	struct sl_seen_line line[SL_SEEN_LINES]; /* innermost first */
};

/*
 * Deaths of code objects are counted by address, as in agent/stacks/inner.h and for the same reason.  Processes that forked have
 * theirs at the same addresses, so the process's id counts too.
 */
#define SL_SEEN_SLOT(code, pid) ((__u32)(((code) >> 4 ^ (__u64)(pid) << 44) * 0x9e3779b97f4a7c15ull >> (64 - SL_SEEN_SLOT_BITS)))

/* Deaths in a slot, and whether one of its code objects was seen on a stack. */
struct sl_seen_deaths {
	__u64 count, seen;
};

#define SL_SEEN_PIECES 4
#define SL_SEEN_PIECE  1024 /* bytes of a piece; of the last, which is the line table, SL_SEEN_TABLE */
#define SL_SEEN_TABLE  4096

/* A code object that dies, with its name, its file and its line table, as they lie in memory. */
struct sl_seen_death {
	__u32 kind, pid;
	__u64 code; /* SL_SEEN_LINE */
	struct {
		__u64 address, bytes;
	} piece[SL_SEEN_PIECES];
	__u8 data[(SL_SEEN_PIECES - 1) * SL_SEEN_PIECE + SL_SEEN_TABLE];
};

/* How many calls were lost, by reason, and how many native stacks were left out so that calls would not be. */
enum sl_seen_lost { SL_SEEN_LOST_FULL, SL_SEEN_LOST_DEPTH, SL_SEEN_LOST_STACK, SL_SEEN_LOST_COUNT };
