/* SPDX-License-Identifier: MIT */
/*
 * What the files of this folder change in the model: sites, rows and devices, the state of each thread, and the begin and end of a
 * block, which update every sum, peak and line.  For this folder only.
 */
#pragma once

#include "analyzer/model/state/model.h"

/* Bytes and blocks allocated and freed: PyTorch's where it reports them, else those of calls. */
struct sl_turnover {
	uint64_t made_bytes, made_blocks, gone_bytes, gone_blocks;
};

#define SL_OPEN_RANGES_MAX 256 /* most open ranges of a thread */
struct sl_open_range {
	struct sl_making making;
	uint32_t label; /* index into labels */
	uint64_t id;	/* id of RANGE_START; 0: the range was pushed */
	uint64_t step, begin_ns, before;
	struct sl_turnover turnover; /* the thread's turnover when the range began */
	struct sl_turnover counted;  /* when its label was last counted: later, if a range of the label ended meanwhile */
	uint64_t counted_ns;
	uint64_t communicator, message_bytes; /* for a range of NCCL; 0: unknown */
	int64_t peak, held_before, held_peak;
	bool by_torch;
	uint64_t serial, begin_order;
	struct sl_possession possession; /* what was held when it began */
	uint32_t pairs[SL_PAIRS_MAX];
	unsigned pair_count;
};

struct sl_fresh {
	struct sl_table *table;
	uint64_t address, bytes;
};

#define SL_FRESH_MAX 64
struct sl_thread_state {
	SL_VECTOR(struct sl_open_range) ranges; /* thread 0 has the ranges of the process */
	struct sl_turnover turnover;		/* of the thread; of thread 0: of the process */
	uint32_t index;				/* index in model->threads */
	struct sl_fresh fresh[SL_FRESH_MAX];
	unsigned fresh_count;
	uint32_t tensor;  /* that its next block is; 0: not known */
	uint32_t pass;	  /* the Python stack that it borrowed last, of a backward pass */
	unsigned pending; /* out-of-memory errors whose outcome is not known yet */
	uint64_t last_block_ns;
	uint64_t context; /* context that the thread was last seen in; 0: none yet */
	int64_t device;
};

/* Follows the swings of what a device holds in use: known memory except what PyTorch keeps unused. */
static inline void sl_ledger_swing(const struct sl_model *model, struct sl_device_state *device)
{
	const struct sl_torch *torch = &device->torch;
	uint64_t unused =
		torch->used && torch->reserved_bytes > torch->allocated_bytes ? torch->reserved_bytes - torch->allocated_bytes : 0;

	sl_swing_to(&device->swing, device->known_bytes > unused ? device->known_bytes - unused : 0, model->now_ns);
}

/* Makes what is held now the peak. */
void sl_ledger_peak(const struct sl_model *model, struct sl_device_state *device);

/* Index into devices. */
static inline unsigned sl_ledger_device_slot(int64_t device)
{
	return device < 0 || device >= SL_DEVICES_MAX ? 0 : (unsigned)device + 1;
}

/* Index into rows: memory of the host belongs to no device. */
static inline unsigned sl_ledger_slot(unsigned kind, int64_t device)
{
	return sl_event_kinds[kind].on_host ? 0 : sl_ledger_device_slot(device);
}

struct sl_device_state *sl_ledger_new_device(struct sl_model *model, unsigned slot);
static inline struct sl_device_state *sl_ledger_device(struct sl_model *model, int64_t device)
{
	unsigned slot = sl_ledger_device_slot(device);

	return SL_LIKELY(model->devices[slot]) ? model->devices[slot] : sl_ledger_new_device(model, slot);
}

struct sl_row *sl_ledger_new_row(struct sl_model *model, unsigned kind, unsigned slot);
static inline struct sl_row *sl_ledger_row(struct sl_model *model, unsigned kind, int64_t device)
{
	unsigned slot = sl_ledger_slot(kind, device);

	return SL_LIKELY(model->rows[slot] && model->rows[slot][kind].used) ? &model->rows[slot][kind]
									    : sl_ledger_new_row(model, kind, slot);
}

uint32_t sl_ledger_site(struct sl_model *model, const struct sl_event *event, uint32_t thread, unsigned kind, int device);
struct sl_thread_state *sl_ledger_new_thread(struct sl_model *model, uint32_t thread);
static inline struct sl_thread_state *sl_ledger_thread(struct sl_model *model, uint32_t thread)
{
	return thread < model->threads.count && model->threads.item[thread] ? model->threads.item[thread]
									    : sl_ledger_new_thread(model, thread);
}

/*
 * Counts the block that the present item began (made) or ended: for its thread, for the thread it works for, and for the process. 
 * Only open ranges read these counts, as differences since they began.
 */
void sl_ledger_turn_over(struct sl_model *model, const struct sl_site *site, uint64_t bytes, bool made);
static inline void sl_ledger_count(struct sl_model *model, const struct sl_site *site, uint64_t bytes, bool made)
{
	if (model->in_ranges)
		sl_ledger_turn_over(model, site, bytes, made);
}

/* Returns the site of the same place for segments of a pool, and moves `bytes` of a live block there. */
uint32_t sl_ledger_pooled(struct sl_model *model, uint32_t site, uint64_t bytes, uint64_t born_ns);

/* A block of `site` begins or ends: updates rows, peaks, lines and libraries.  implicit: it was freed together with its owner. */
void sl_ledger_begin_block(struct sl_model *model, uint32_t site, uint64_t bytes);
enum sl_end { SL_END_FREE, SL_END_IMPLICIT };
void sl_ledger_end_block(struct sl_model *model, uint32_t site, uint64_t bytes, uint64_t born_ns, enum sl_end how);

/* A block of `pointers` ended with its owner. */
static inline void sl_ledger_ended(struct sl_model *model, const struct sl_live *block)
{
	if (model->ends)
		*SL_PUSH(&model->ends->all) = *block;
}

/* Sets the size of a live block that was unknown at its begin: that of an import is known from its first mapping. */
void sl_ledger_sized(struct sl_model *model, uint32_t site, uint64_t bytes);

/* Called for each block of any kind, in addition to the site's own figures. */
void sl_ledger_born(struct sl_model *model, struct sl_site *site, uint64_t bytes);
void sl_ledger_died(struct sl_model *model, struct sl_site *site, uint64_t bytes, uint64_t born_ns);

/*
 * Some searches have no index, because honest traces have few entries to search.  Each event of the trace pays for a look at
 * SL_LOOKS_EACH entries; a search that would cost more is skipped.
 */
#define SL_LOOKS_EACH 512
static inline bool sl_ledger_may_look(struct sl_model *model, uint64_t entries)
{
	bool may = model->looks + entries <= SL_LOOKS_EACH * (model->events + 64);

	*(may ? &model->looks : &model->unlooked) += may ? entries : 1;
	return may;
}

/* Called before a site changes: saves what it holds, if its device had a new peak since it was saved last. */
static inline void sl_ledger_save(struct sl_model *model, struct sl_site *site)
{
	const struct sl_device_state *device = model->devices[site->device + 1];
	struct sl_site_course *course = &model->site_course[site - model->sites.item];

	if (SL_LIKELY(device && course->epoch == device->epoch))
		return;
	site->at_peak_bytes = site->live_bytes;
	site->at_peak_blocks = site->live_blocks;
	course->epoch = device ? device->epoch : 0;
}
