/* SPDX-License-Identifier: MIT */
/*
 * The requests of a recorded process to PyTorch's allocator on one device, in the order in which they took effect.  Beside them,
 * the memory that everything else took of the device meanwhile.  About 40 bytes an event.
 */
#pragma once

#include "analyzer/fit/places.h"
#include "analyzer/fit/settings.h"
#include "analyzer/trace/trace.h"

enum sl_fit_verb {
	SL_FIT_ALLOC,
	SL_FIT_TRY, /* a request that ran out of memory */
	SL_FIT_FREE,
	SL_FIT_FREE_LATER, /* waits for events until SL_FIT_DONE */
	SL_FIT_DONE,
	SL_FIT_EMPTY,	 /* torch.cuda.empty_cache() */
	SL_FIT_OTHERS,	 /* everything else on the device takes `bytes` from now on */
	SL_FIT_OUTSIDE,	 /* the part of it that no call asked for: context, code, other processes */
	SL_FIT_PLACE,	 /* the next segment of the driver lies at address `bytes` */
	SL_FIT_SETTINGS, /* text `id` of the definitions */
	SL_FIT_FRACTION, /* memory fraction of the device: `bytes` are the bits of a double */
	SL_FIT_BEGIN,	 /* a graph begins to be captured, with private pool `pool` */
	SL_FIT_END,	 /* the capture has ended */
	SL_FIT_HOLD,	 /* private pool `pool` has one user more: a MemPool was made of it, or a graph keeps it */
	SL_FIT_USE,	 /* the program's requests go to the pool, which has one user more */
	SL_FIT_UNUSE,	 /* the program's requests no longer go to the pool */
	SL_FIT_GONE,	 /* the pool has one user less */
	SL_FIT_DROP,	 /* the pool's unused memory is given back if it has no user */
	SL_FIT_LACK,	 /* a call that is not the allocator's was refused although `bytes` were free */
};

struct sl_fit_op {
	uint64_t bytes;
	uint32_t id;	 /* of the block while it lives; reused later */
	uint32_t python; /* id of the Python stack */
	uint16_t stream; /* numbered in the order of their handles; the default stream is 0 */
	uint16_t pool;	 /* private; ALLOC, TRY: 0 is everybody's */
	uint8_t verb;
	uint8_t refused; /* ALLOC, TRY: how often the driver refused */
};

/* A piece of a segment that was there before the first op: a block, or free memory. */
struct sl_fit_seed {
	uint64_t address, bytes, requested;
	uint32_t id, number; /* number: pieces of one segment have the same */
	uint16_t stream, pool;
	bool small, expandable, active;
};

/* Another framework's pool in the same process: part of what SL_FIT_OTHERS tells. */
struct sl_fit_beside {
	uint64_t bytes, used; /* used: at the most, by its own figure; 0: it has none */
	size_t since;	      /* op; the newest growth */
	uint32_t python;      /* the stack that took it */
};

/* Releases that send requests to private pools in one way: up to 2.7, 2.9, 2.12, later ones. */
#define SL_FIT_ERAS 4
static inline unsigned sl_fit_era(unsigned release)
{
	return (release > SL_FIT_RELEASE(2, 7)) + (release > SL_FIT_RELEASE(2, 9)) + (release > SL_FIT_RELEASE(2, 12));
}

struct sl_fit_recording {
	const char *session; /* as in the report */
	struct sl_trace *trace;
	int device;
	unsigned release; /* SL_FIT_RELEASE; 0: not known */
	const char *text; /* the recorded settings */
	bool rocm;
	struct sl_fit_settings settings;
	uint64_t device_total; /* 0: not known */
	SL_VECTOR(struct sl_fit_op) ops;
	SL_VECTOR(uint64_t) reserved;	     /* after each op, as PyTorch said; SL_UNKNOWN: it said nothing */
	SL_VECTOR(uint64_t) times;	     /* of each op, CLOCK_MONOTONIC of the process */
	bool window;			     /* of a snapshot of PyTorch's (window.h), as are the members up to newest */
	SL_VECTOR(struct sl_fit_seed) seeds; /* by address */
	SL_VECTOR(uint64_t) addresses;	     /* of each op: of its block; 0: none */
	uint64_t lowest[2];		     /* of pages of expandable segments, large and small */
	uint64_t reserved_start;
	bool pools;		 /* private ones are used, */
	bool pools_open;	 /* of which the file does not tell whether they are of graphs, nor how long they are in use */
	unsigned oldest, newest; /* releases, of 2.N, that write such a file */
	uint32_t ids;
	unsigned streams;	   /* beside the default one */
	unsigned pools_since;	   /* the first release of which private pools as it uses them are replayed; 0: it uses none */
	unsigned unlike;	   /* 1 << sl_fit_era: in which other requests would go to private pools */
	unsigned models;	   /* 1 << enum sl_fit_ties: ways of the driver that explain where segments were (places.h) */
	uint64_t events, requests; /* PyTorch's reports; of which requests */
	uint64_t unasked;	   /* requests of unknown size: the block's is taken */
	uint64_t ooms;
	bool lacked; /* SL_FIT_LACK ended it: what the program would have done is unknown */
	struct sl_fit_beside pool;
	bool limits;		  /* the program limits itself by a memory fraction */
	bool goes_on;		  /* the program goes on after its last out-of-memory error */
	bool blind;		  /* it is not visible whether the program sets a memory fraction */
	bool asks_free;		  /* the program asks how much memory is free, and not only after an out-of-memory error */
	uint64_t unsure;	  /* of a dry run: a card may take as much more (analyzer/report/dry.h) */
	bool others_known;	  /* context and other processes are in SL_FIT_OTHERS */
	bool zeroes_late;	  /* the source does, at the line that failed (analyzer/source/source.h) */
	const char *doubt;	  /* why there can be no verdict; NULL: there can */
	struct sl_budget *budget; /* of the process's replays; with no time left all runs end at once */
};

/* Why there is no verdict where a trace is not whole (sl_trace_is_whole). */
#define SL_FIT_PARTIAL "events are missing in the trace (--keep, --asleep, attached late, lost or damaged)"

/* A device on which PyTorch's allocator reported nothing. */
struct sl_fit_driver {
	const char *session; /* of its process; the caller of sl_fit_record has it */
	int device;
	uint64_t peak_bytes;   /* the most that was live at once */
	uint64_t given_bytes;  /* peak_bytes with the rounding to the driver's units, about */
	uint64_t beside_bytes; /* the most that samples found beside it: context, code, others; SL_UNKNOWN: none since the peak */
	uint64_t failed_total; /* total memory of the device, if a request was refused for good; 0: none was, or it is not known */
	uint64_t unsure;       /* of a dry run: a card may take as much more */
	bool refused;	       /* a request was refused, by the device or on purpose: what the program would have done is unknown */
	bool went_on;	       /* it got over all its errors, as the report judges them: a smaller device refuses the same */
	bool partial;	       /* SL_FIT_PARTIAL */
	bool pool;	       /* some is from cudaMallocAsync's pool: figures are a lower bound */
};

/*
 * Recordings of all devices of a process that PyTorch's native allocator reported, and what is known of the others.
 * The trace is read to its end; the caller owns it and keeps it as long as the recordings.
 */
struct sl_fit_process {
	struct sl_trace *trace;
	struct sl_fit_recording *recordings;
	unsigned count;
	struct sl_fit_driver *drivers;
	unsigned driver_count;
	struct sl_budget budget;
};

/* True: the program asks how much memory is free.  After an error PyTorch itself asks, for its message. */
struct sl_model;
bool sl_fit_asks_free(const struct sl_model *model);

/* Reads a trace that is no snapshot; sl_fit_record (window.h) reads any. */
void sl_fit_record_calls(struct sl_fit_process *process, struct sl_trace *trace, const char *session, bool alone);
void sl_fit_forget(struct sl_fit_process *process);

/*
 * The recording up to the failed request whose time is nearest, as if the program had ended with it.  False: none failed.  It has
 * the lists of `whole`, and is not freed.
 */
bool sl_fit_until(struct sl_fit_recording *until, const struct sl_fit_recording *whole, uint64_t time_ns);
