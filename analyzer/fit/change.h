/* SPDX-License-Identifier: MIT */
/*
 * Changes of a program that would have let it fit.  Each is a rule over its recorded requests (changes.c has the table) and is
 * replayed under the recorded capacity before it is told (proof.c).
 */
#pragma once

#include "analyzer/fit/kept.h"
#include "analyzer/report/change.h"

/* What one change does to the requests. */
struct sl_fit_edits {
	const struct sl_fit_keeps *keeps; /* what the program keeps from step to step, for all rules */
	const struct sl_fit_settings *settings;
	double *scale;	/* of each life */
	size_t *dies;	/* op before which it is freed, earlier or later; SL_FIT_GAP: as recorded */
	bool *gone;	/* never requested */
	bool *empties;	/* of each op: the cache is emptied before it */
	uint64_t extra; /* bytes that are requested before the op `extra_from` and stay until the end of the step */
	size_t extra_from;
	uint64_t beside; /* so much less is on the device that is not PyTorch's, from op `beside_from` on */
	size_t beside_from;
	struct sl_fit_settings made;
	bool scaled;
	bool loose;	     /* when exactly blocks end is not known */
	enum sl_passes most; /* no better answer, whatever the replay says */
};

/* One rule: false: the program has nothing of the kind. */
struct sl_fit_rule {
	const char *kind;
	bool (*apply)(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
	const char *settings; /* of a change of the allocator's settings */
	bool about;	      /* see struct sl_change */
};
extern const struct sl_fit_rule sl_fit_rules[]; /* ended by kind NULL */
bool sl_fit_change_free_leak(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_no_grad_beside(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_no_grad(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_offload_joined(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_offload_kept(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_half_state(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_state_8bit(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_set_to_none(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_no_second_copy(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_half_batch(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_shorter_longest(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_chunked(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
bool sl_fit_change_checkpointing(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);

/* Names the line to change; NULL: none. */
void sl_fit_change_name(struct sl_change *change, const struct sl_fit_place *place);
/* True: the bytes are worth a change. */
bool sl_fit_change_matters(const struct sl_fit_program *program, uint64_t bytes);

struct sl_fit_proof {
	struct sl_fit_program program;
	struct sl_change changes[SL_CHANGES_MAX]; /* best first */
	unsigned count;
	unsigned untried;			   /* rules for which there was no time */
	uint64_t capacity;			   /* of the device */
	bool of_allocator;			   /* it is what the allocator of PyTorch alone may take */
	const char *why_not;			   /* nothing was tried, because; NULL: it was */
	double curve[SL_CHANGE_POINTS], failed_at; /* as in struct sl_changes */
};

/* seconds: of the processor, for all replays.  A window's release is found. */
void sl_fit_proof_make(struct sl_fit_proof *proof, struct sl_fit_recording *recording, double seconds);
void sl_fit_proof_free(struct sl_fit_proof *proof);
