/* SPDX-License-Identifier: MIT */
/* A temporary folder, and a synthetic trace replayed into a model. */
#pragma once

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "analyzer/model/state/model.h"
#include "analyzer/trace/files.h"
#include "analyzer/model/replay/replay.h"
#include "synth.h"

struct replay {
	char folder[64];
	struct sl_synth *synth;
	struct sl_images images;
	struct sl_trace *trace;
	struct sl_model *model;
};

static inline void replay_begin(struct replay *r)
{
	*r = (struct replay){0};
	/* in memory where that can be: some tests rewrite a file thousands of times */
	snprintf(r->folder, sizeof(r->folder), "%s/sl-replay-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	assert_non_null(mkdtemp(r->folder));
	r->synth = synth_new(r->folder, 0, 4242);
}

/* Open and replay the trace in the folder without closing it first. */
static inline void replay_open(struct replay *r)
{
	struct sl_damage damage = {0};
	const struct sl_item *item;
	struct sl_order *order;

	assert_true(sl_images_add(&r->images, r->folder));
	sl_images_group(&r->images);
	assert_int_equal(r->images.image_count, 1);
	r->trace = sl_trace_open(&r->images.images[0], &damage);
	assert_non_null(r->trace);
	r->model = sl_replay_new(&r->trace->header, &r->trace->defs);
	order = sl_order_new(r->trace);
	while ((item = sl_order_next(order)))
		sl_replay_apply(r->model, item);
	sl_order_free(order);
	sl_replay_end(r->model, false);
}

static inline void replay_end(struct replay *r, enum synth_end end)
{
	synth_close(r->synth, end);
	replay_open(r);
}

static inline int replay_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static inline void replay_free(struct replay *r)
{
	sl_replay_free(r->model);
	sl_trace_close(r->trace);
	sl_images_free(&r->images);
	nftw(r->folder, replay_remove, 8, FTW_DEPTH | FTW_PHYS);
}

static inline const struct sl_row *replay_row(const struct replay *r, enum sl_kind kind, int device)
{
	return sl_model_row(r->model, kind, device + 1);
}

#define expect_row(r, kind, device, allocs, free_calls, implicit, live)                                                            \
	do {                                                                                                                       \
		const struct sl_row *row_ = replay_row(r, kind, device);                                                           \
		assert_int_equal(row_->allocations, allocs);                                                                       \
		assert_int_equal(row_->frees, free_calls);                                                                         \
		assert_int_equal(row_->implicit_frees, implicit);                                                                  \
		assert_int_equal(row_->live_bytes, live);                                                                          \
		assert_int_equal(row_->allocations, row_->frees + row_->implicit_frees + row_->live_blocks);                       \
	} while (0)
