/* SPDX-License-Identifier: MIT */
/*
 * Iterates over the events of all processes of a run in order of time, in constant memory.  Every export reads events through it.
 * Events before `from` are applied to the models but not returned; the merge ends at `to`.
 */
#pragma once

#include "analyzer/report/report.h"
#include "analyzer/base/map.h"

struct sl_merge_process {
	struct sl_process process; /* its trace; its model if options.models; symbols are opened when first needed */
	struct sl_order *order;
	const struct sl_item *item; /* the current event or record, valid until the next sl_merge_next */
	uint64_t unix_ns;	    /* time of `item` */
	unsigned index;
	bool pending; /* `item` has not been applied to the model */
	SL_VECTOR(struct sl_where) wheres;
	struct sl_idmap where_ids;
};

/* Library and line of a stack, looked up once for each stack. */
struct sl_where {
	struct sl_stack stack;
	const char *library, *line; /* "train.py:88 forward" or "" */
};

struct sl_merge_options {
	const char *run;       /* as in struct sl_pipeline_options */
	const char *from, *to; /* seconds since the run began, or Unix nanoseconds; NULL: all */
	long rank;	       /* -1: all */
	bool models, progress;
	const struct sl_report *report; /* of the whole run, to name the lines of stacks; NULL: `line` stays "" */
};

struct sl_merge {
	struct sl_images images;
	struct sl_merge_process *processes;
	unsigned count;
	struct sl_merge_process **heap; /* ordered by the time of the next item, earliest first */
	unsigned heap_count;
	uint64_t from_ns, to_ns, begin_ns; /* Unix times; to_ns 0: no end */
	uint64_t events;		   /* number of events returned so far */
	uint64_t last_said;
	bool progress;
	struct sl_arena arena;
	struct sl_symbols *symbols;
};

enum sl_merge_result { SL_MERGE_FINE, SL_MERGE_USAGE, SL_MERGE_UNREADABLE };

/* Errors are printed on stderr. */
enum sl_merge_result sl_merge_open(struct sl_merge *merge, char *const *paths, unsigned count,
				   const struct sl_merge_options *options);
void sl_merge_close(struct sl_merge *merge); /* prints the damage that was found */

/* The process with the next item, NULL at the end.  The item is not applied to the model yet. */
struct sl_merge_process *sl_merge_next(struct sl_merge *merge);

/* Applies the item to the model.  Otherwise the next sl_merge_next does it. */
void sl_merge_apply(struct sl_merge_process *process);

/* The index of a stack's library and line in process->wheres.  It stays the same until the merge is closed. */
uint32_t sl_merge_where(struct sl_merge *merge, struct sl_merge_process *process, struct sl_stack stack);

/* The current event with its names, to print. */
struct sl_event_view {
	uint64_t begin_ns, end_ns;	       /* Unix times; end_ns 0: the call had not returned */
	int64_t rank, pid, tid, step;	       /* rank, step -1: none */
	const char *api, *verb, *kind, *label; /* NULL: none */
	bool returned;			       /* false: the call was in flight, or left by longjmp, an exception or cancellation */
	const struct sl_event *event;
};
void sl_merge_view(struct sl_event_view *view, const struct sl_merge_process *process);

/* The library and line of the current event. */
const struct sl_where *sl_merge_place(struct sl_merge *merge, struct sl_merge_process *process);

/* Writes the members that forms in JSON share, t0_ns to result. */
void sl_merge_put(struct sl_json *j, const struct sl_event_view *view);
