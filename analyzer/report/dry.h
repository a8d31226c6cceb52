/* SPDX-License-Identifier: MIT */
/*
 * A dry run (doc/dry-run.md): the job ran over a device that computes nothing. What it allocated is the job's own; times, rates and
 * what the device holds beside it are not, so they are not told.
 */
#pragma once

#include "analyzer/report/refuser.h"

/* What follows "DRY RUN" in an answer. */
#define SL_DRY_WORDS "memory is the job's, no number was computed"

/* The card as people say it ("H200"); NULL: the process ran on a real device. The header owns it. */
const char *sl_dry_card(const struct sl_header *header);

/* The same of a run: of its first process that was dry. */
const char *sl_dry_report(const struct sl_report *report);

/* The first line of a screen of a dry run; none where card is NULL. */
void sl_dry_head(FILE *out, const char *card);

/* What the job would need of a device, in bytes: of the device on which it held most. */
struct sl_dry_need {
	uint64_t job;	 /* its highest: what PyTorch reserved, and what libraries allocated beside it */
	uint64_t unsure; /* what the job may hold beyond that: sizes that a rule of dry/ does not give exactly */
	const char *unsure_of;
	uint64_t low, high; /* outside of that, for all its processes there: contexts, code, and cuBLAS where not measured */
	uint64_t capacity;  /* of the card, or less by --limit */
	bool limited;	    /* it is less, by --limit */
	bool measured;	    /* low and high were read from such a card */
};

/* False: the run was not dry, or it used no device. */
bool sl_dry_need(const struct sl_report *report, struct sl_dry_need *need);

/* True: the upper figures do not fit the capacity. */
bool sl_dry_depends(const struct sl_dry_need *need);

/* Bytes that a card may take for a process beyond what the dry device took; 0: the process ran on a real one. */
uint64_t sl_dry_span(const struct sl_trace *trace);

/*
 * Reads of values that no kernel computed: each line of the program once (dry/python/stormlog_dry.py), in the order of their first
 * reads.
 */
struct sl_dry_read {
	const char *line, *what; /* "/home/me/train.py:88", "item of float32" */
};

/* The read number `index` of a process; false: it has fewer. */
bool sl_dry_read(const struct sl_process *process, size_t index, struct sl_dry_read *read);

/* The program's models at an out-of-memory, by Python (dry/python/stormlog_dry_modules.py).  It moves one of them to the device. */
struct sl_dry_weights {
	uint64_t placed, total; /* bytes on the device; bytes of all weights */
	uint64_t wide, own;	/* of `total`: those in float32; those of the model that moves */
	const char *class;	/* of that model, up to the first blank */
	const char *line;	/* of the program: "/home/me/load.py:7" */
};

bool sl_dry_weights(const struct sl_process *process, struct sl_dry_weights *weights);

/* What takes memory on a card that a dry run cannot know ("objects that rank 0 sends"), at the line that used it; as above. */
bool sl_dry_unknown(const struct sl_process *process, size_t index, struct sl_dry_read *unknown);

/* "not counted: objects that rank 0 sends (train.py:12)"; false: a dry run knows all that the program used. */
bool sl_dry_uncounted(const struct sl_report *report, char *out, size_t size);

/* True: how many elements a tensor has followed from it. */
bool sl_dry_is_size(const struct sl_dry_read *read);

/*
 * A process ended by its own before its second step of an optimizer, or before the last one of --steps, and a value that was not
 * computed may have ended it: on a card it may go on. Returns the step; 0: none did. read: the last such line.
 */
uint64_t sl_dry_early(const struct sl_report *report, struct sl_dry_read *read);

/* True: values that were not computed went to the host as an array or list, and may have chosen sizes there.  read: the first. */
bool sl_dry_copied(const struct sl_report *report, struct sl_dry_read *read);

/* True: there was such a read of values that were not computed.  read: the first one. */
bool sl_dry_shape(const struct sl_report *report, struct sl_dry_read *read);

/* How many steps of an optimizer ran, in the process that ran most; SL_UNKNOWN: no PyTorch was there. asked: --steps, or 0. */
uint64_t sl_dry_steps(const struct sl_report *report, uint64_t *asked);

/*
 * "train.py:88, train.py:90": lines that read values that were not computed in the last step of a job that ended by its own.
 * By the program's source such a value may end it (dry/python/stormlog_dry_decides.py). NULL: none did.
 */
const char *sl_dry_late(const struct sl_report *report);

/* "3 of 10 optimizer steps ran", and what may have ended them; false: no PyTorch was there. */
bool sl_dry_ran(const struct sl_report *report, char *out, size_t size);

/* "the first 20 steps fit; ...": the dry run ended the job, and this is what it saw; NULL: it did not. */
const char *sl_dry_end(const struct sl_process *process);
/* What the first process of the run that noted something noted under the key, as "dry.end"; NULL: none did. */
const char *sl_dry_noted(const struct sl_report *report, const char *key);

/* What a server printed when it was up, after which the launcher ended it; NULL: it was not ended so. */
const char *sl_dry_until(const struct sl_report *report);

/*
 * Who refused a request that the program did not get over, though it may have caught the error: the card or --limit, if one of
 * them did; else another limit, which says nothing of the card.
 */
enum sl_refuser sl_dry_refused(const struct sl_report *report);

/* True: it was the card or --limit. */
bool sl_dry_ran_out(const struct sl_report *report);

/* What the job was tried on: "H200", "1.46 GiB of L4 (--limit)". */
const char *sl_dry_of(const struct sl_report *report, char *out, size_t size);

/*
 * Why a dry run tells of less than the job: stormlog ended it where its memory had settled, without --steps; or a process did not
 * end with status 0.  In static storage; NULL: the job came to its end, or to the step that was asked for.
 */
const char *sl_dry_unfinished(const struct sl_report *report);

/* True: the last dry run into the folder did not start, used no GPU or failed, and this one came to its end: it is earlier. */
bool sl_dry_unanswered(const struct sl_report *report);

/* "8.0 to 8.1 GiB of 22.0 GiB: 7.4 GiB of the job and 610 to 628 MiB outside of it (...)", for a line of a screen. */
void sl_dry_say(const struct sl_dry_need *need, char *out, size_t size);

#define SL_DRY_EARLIER "It is an earlier one: the last one here did not start, used no GPU, or its command failed"
