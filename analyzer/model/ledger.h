/* SPDX-License-Identifier: MIT */
/*
 * The books of the model, for files of this folder only: sites, rows and devices by name, the state of each thread, and the
 * begin and end of a block, which update every sum, peak and line.
 */
#pragma once

#include "analyzer/model/model.h"

/* What was asked for and given back: bytes and blocks of PyTorch where it reports, else of calls. */
struct sl_turnover {
	uint64_t made_bytes, made_blocks, gone_bytes, gone_blocks;
};

#define SL_OPEN_RANGES_MAX 256 /* of a thread */
struct sl_open_range {
	struct sl_making making;
	uint32_t label; /* index into labels */
	uint64_t id;	/* of RANGE_START; 0: pushed */
	uint64_t step, begin_ns, before;
	struct sl_turnover turnover; /* of its thread, when it began */
	struct sl_turnover counted;  /* when its label had last been counted: later, where a range of it ended meanwhile */
	uint64_t counted_ns;
	uint64_t communicator, message_bytes; /* of an NCCL range; 0: unknown */
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
	struct sl_turnover turnover;		/* thread 0: of the process */
	uint32_t index;				/* in the model's threads */
	struct sl_fresh fresh[SL_FRESH_MAX];
	unsigned fresh_count;
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

	sl_swing_to(&device->swing, device->known > unused ? device->known - unused : 0, model->now_ns);
}

/* What is held now becomes the peak. */
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
 * The present item began (made) or ended a block: counts it for its thread, for the thread it works for, and the process.  Only
 * open ranges ask, by what was counted since they began.
 */
void sl_ledger_turn_over(struct sl_model *model, const struct sl_site *site, uint64_t bytes, bool made);
static inline void sl_ledger_count(struct sl_model *model, const struct sl_site *site, uint64_t bytes, bool made)
{
	if (model->in_ranges)
		sl_ledger_turn_over(model, site, bytes, made);
}

/* All counts begin anew, inside of open ranges too. */
void sl_ledger_count_anew(struct sl_model *model);
/* The thread opened its first range (1), or closed its last (-1). */
void sl_ledger_ranged(struct sl_model *model, const struct sl_thread_state *state, int by);

/* The site for the same place when its block turns out to be a segment of a pool; `bytes` of a live block move there. */
uint32_t sl_ledger_pooled(struct sl_model *model, uint32_t site, uint64_t bytes, uint64_t born_ns);

/* A block of `site` begins or ends: updates rows, peaks, lines and libraries.  implicit: it was freed together with its owner. */
void sl_ledger_begin_block(struct sl_model *model, uint32_t site, uint64_t bytes);
enum sl_end { SL_END_FREE, SL_END_IMPLICIT };
void sl_ledger_end_block(struct sl_model *model, uint32_t site, uint64_t bytes, uint64_t born_ns, enum sl_end how);

/* The size of a live block that was unknown when it began: an import tells it by its first mapping. */
void sl_ledger_sized(struct sl_model *model, uint32_t site, uint64_t bytes);

/* Called for each block of any kind, in addition to the site's own figures. */
void sl_ledger_born(struct sl_model *model, struct sl_site *site, uint64_t bytes);
void sl_ledger_died(struct sl_model *model, struct sl_site *site, uint64_t bytes, uint64_t born_ns);

/*
 * Some questions have no index: those of a few entries in honest traces.  Each event of the trace pays for a look at so many
 * of them; a question that costs more is not answered.
 */
#define SL_LOOKS_EACH 512
static inline bool sl_ledger_may_look(struct sl_model *model, uint64_t entries)
{
	bool may = model->looks + entries <= SL_LOOKS_EACH * (model->events + 64);

	*(may ? &model->looks : &model->unlooked) += may ? entries : 1;
	return may;
}

/* Called before a site changes.  If its device had a new peak since the site saved what it held, that is what it holds now. */
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
