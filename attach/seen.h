/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the BPF program hands over: one call that has returned, with its arguments as they lay in registers and on the stack. */
#ifndef ATTACH_SEEN_H
#define ATTACH_SEEN_H

#include <linux/types.h>

#define SL_SEEN_REGISTERS 6
#define SL_SEEN_STACK	  8 /* words of arguments on the stack */
#define SL_SEEN_WORDS	  (SL_SEEN_REGISTERS + SL_SEEN_STACK)
#define SL_SEEN_COPIES	  6   /* arguments that point to data */
#define SL_SEEN_COPY	  256 /* bytes copied of each */
#define SL_SEEN_DEPTH	  8   /* depth of nested calls that are followed */
#define SL_SEEN_APIS	  2048
#define SL_SEEN_FRAMES	  16

/* A probe's cookie: which call it is, and the process by its id in the collector's namespace. */
#define SL_SEEN_COOKIE(pid, api)   ((__u64)(pid) << 32 | (api))
#define SL_SEEN_COOKIE_PID(cookie) ((__u32)((cookie) >> 32))

/* Which of a call's arguments point to data, and how much of it is to be copied. */
struct sl_seen_row {
	__u32 copies;
	struct {
		__u16 word, bytes; /* index into words; at most SL_SEEN_COPY */
	} copy[SL_SEEN_COPIES];
};

struct sl_seen {
	__u64 begin_ns, end_ns;
	__u64 words[SL_SEEN_WORDS];
	__u64 number, outer;	      /* call numbers of the thread; outer 0: in no other call */
	__u64 frames[SL_SEEN_FRAMES]; /* return addresses by frame pointers, innermost first; 0: no more */
	__s64 result;
	__u32 pid, tid; /* tid: as the node numbers it */
	__u32 api, copies;
	__u8 data[SL_SEEN_COPIES][SL_SEEN_COPY]; /* the first `copies` are handed over */
};

/* How many calls were lost, by reason. */
enum sl_seen_lost { SL_SEEN_LOST_FULL, SL_SEEN_LOST_DEPTH, SL_SEEN_LOST_COUNT };

#endif
