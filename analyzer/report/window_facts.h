/* SPDX-License-Identifier: MIT */
/* The facts that the header of a snapshot's trace holds (analyzer/snapshot/convert.h). */
#pragma once

#include "analyzer/report/report.h"

struct sl_window_facts {
	uint64_t events;		    /* of the device; fewer than SL_WINDOW_FEW: the file is the state at its end */
	uint64_t reserved, requested;	    /* before the first event */
	bool exact;			    /* the place of each block is known */
	bool trimmed;			    /* the events do not lead to the end */
	uint64_t span_ns;		    /* from the first event of all devices to the last; 0: the file has no times */
	uint64_t rounds;		    /* of the program's own loop */
	uint64_t free_pieces, free_largest; /* at the end: pieces that nothing holds, and the bytes of the largest */
	uint64_t waiting;		    /* at the end: bytes that the program freed while other streams used them */
};
#define SL_WINDOW_FEW 10

/* False: it is no snapshot, or has no such device. */
bool sl_window_facts(const struct sl_header *header, int device, struct sl_window_facts *facts);

/* True: each process is a window of PyTorch's, and there is one. */
bool sl_window_all(const struct sl_report *report);

/* False: it is a snapshot of which no device has a window. */
bool sl_window_shows(const struct sl_process *process);

/* How often the process's own loop went round, as far as what was recorded tells; UINT64_MAX: of a recording. */
uint64_t sl_window_rounds(const struct sl_process *process);
#define SL_WINDOW_ROUNDS_MIN 4 /* the first may make what stays, and the last may be cut off: fewer show no growth */

/* What PyTorch's allocator reserved and gave back in the window of one device. */
struct sl_window_cache {
	uint64_t peak, peak_tensors, peak_ns; /* most that was reserved, what tensors held then, and when in the window */
	uint64_t emptied, emptied_bytes;      /* empty_cache() of the program: times that segments went, and their bytes */
	struct sl_stack emptied_stack;	      /* of the largest */
	uint64_t retried, retried_bytes;      /* requests that found no memory, and got it once segments had gone */
	struct sl_stack retried_stack;	      /* the next four are of the largest too */
	uint64_t retry_ns, retry_bytes, asked;
};

/* False: it is no snapshot, or has no such device. */
bool sl_window_cache(const struct sl_header *header, int device, struct sl_window_cache *cache);

/* "2.5 to 2.7", "2.11 or newer": the releases that write such a file; "": it is no snapshot. */
const char *sl_window_releases(const struct sl_header *header, char *out, size_t size);

/* The memory was there before the window, and no stack tells who made it. */
bool sl_window_is_before(struct sl_process *process, struct sl_stack stack);
