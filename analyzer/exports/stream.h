/* SPDX-License-Identifier: MIT */
/*
 * All events of a run, ordered by time over its processes, in constant memory.  Every export is made from this.  Events before
 * `from` are skipped (the models have seen them); the stream ends at `to`.
 */
#pragma once

#include "analyzer/report/report.h"
#include "analyzer/base/map.h"

struct sl_stream_process {
	struct sl_process process; /* trace; a model if models were asked for; symbols when first needed */
	struct sl_order *order;
	const struct sl_item *item; /* the present event or record; valid until sl_stream_next */
	uint64_t unix_ns;	    /* of the item */
	unsigned index;
	bool pending; /* the model has not seen the present item */
	SL_VECTOR(struct sl_where) wheres;
	struct sl_idmap where_ids;
};

/* A site, described once. */
struct sl_where {
	struct sl_stack stack;
	const char *library, *line; /* "train.py:88 forward" or "" */
};

struct sl_stream_options {
	const char *run;       /* as sl_pipeline_options */
	const char *from, *to; /* seconds since the run began, or Unix nanoseconds; NULL: all */
	long rank;	       /* -1: all */
	bool models, progress;
	const struct sl_report *report; /* of the whole run: tells which frame of a stack is its line; NULL: no line is asked for */
};

struct sl_stream {
	struct sl_images images;
	struct sl_stream_process *processes;
	unsigned count;
	struct sl_stream_process **heap; /* earliest first */
	unsigned heap_count;
	uint64_t from_ns, to_ns, begin_ns; /* Unix; to_ns 0: no end */
	uint64_t events;		   /* handed out so far */
	uint64_t last_said;
	bool progress;
	struct sl_arena arena;
	struct sl_symbols *symbols;
};

enum sl_stream_result { SL_STREAM_FINE, SL_STREAM_USAGE, SL_STREAM_UNREADABLE };

/* Errors are printed on stderr. */
enum sl_stream_result sl_stream_open(struct sl_stream *stream, char *const *paths, unsigned count,
				     const struct sl_stream_options *options);
void sl_stream_close(struct sl_stream *stream); /* prints what could not be read */

/* The process whose item is next, NULL at the end.  Its model has not seen the item yet. */
struct sl_stream_process *sl_stream_next(struct sl_stream *stream);

/* Applies the item to the model; sl_stream_next does it where this was not called. */
void sl_stream_apply(struct sl_stream_process *process);

/* Library and line of code of a site, as an index into process->wheres, which never changes. */
uint32_t sl_stream_where(struct sl_stream *stream, struct sl_stream_process *process, struct sl_stack stack);

/* An event, ready to print. */
struct sl_event_view {
	uint64_t begin_ns, end_ns;	       /* Unix; end 0: the call had not returned */
	int64_t rank, pid, tid, step;	       /* rank, step -1: none */
	const char *api, *verb, *kind, *label; /* NULL: none */
	const struct sl_event *event;
	const struct sl_where *where;
	uint32_t where_index;
};
void sl_stream_view(struct sl_event_view *view, struct sl_stream *stream, struct sl_stream_process *process);
