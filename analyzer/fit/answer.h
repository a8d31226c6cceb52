/* SPDX-License-Identifier: MIT */
/*
 * A recording under several settings and capacities, for the verb fit, the gate and the page.  There is an answer only where
 * the replay under the recorded settings reproduces what happened.
 */
#pragma once

#include "analyzer/base/format.h"
#include "analyzer/fit/run.h"

#define SL_FIT_CAPACITIES 64
#define SL_FIT_CHOICES	  32
#define SL_FIT_RELEASES	  8

struct sl_fit_choice {
	const char *text; /* NULL: the recorded settings */
	struct sl_fit_settings settings;
	unsigned release;  /* whose rules: SL_FIT_RELEASE; 0: the recorded one */
	const char *wrong; /* why there is no verdict under that release; NULL: there can be one */
	char name[200];	   /* with a release: as a user reads it */
};

/* One recording under one choice of settings. */
struct sl_fit_answer {
	struct sl_fit_outcome free; /* with unlimited capacity */
	struct sl_fit_trail trail;  /* of `free`; no points: not asked for */
	struct sl_fit_outcome at[SL_FIT_CAPACITIES];
	bool ambiguous[SL_FIT_CAPACITIES]; /* the result depends on where the driver puts segments, or on the card */
	struct sl_fit_scan scan;
	uint64_t low, high;  /* of a window: the smallest capacity is between them; SL_UNKNOWN: not known */
	uint64_t other_from; /* the largest always_from with other placements; SL_UNKNOWN: no difference */
};

/* The question that is put to every recording. */
struct sl_fit_question {
	uint64_t capacities[SL_FIT_CAPACITIES]; /* empty: the recorded device */
	unsigned capacity_count;
	const char *settings[SL_FIT_CHOICES]; /* empty: the recorded ones and some that are often tried */
	unsigned setting_count;
	bool of_allocator; /* capacities are what PyTorch's allocator alone may take */
	bool unscanned;	   /* the smallest capacity is not asked for */
	uint64_t scan_max; /* limit on the operations of one such search; 0: the usual one */
	unsigned points;   /* of the trail; 0: none */
	/* SL_FIT_RELEASE of others whose rules are asked for.  Of a window, which names no release, the first that reproduces it is
	 * the file's */
	unsigned releases[SL_FIT_RELEASES];
	unsigned release_count;
	enum sl_fit_ties ties; /* placement of the given figures; SL_FIT_GIVEN: the likeliest.  A verdict needs all to agree */
};

struct sl_fit_subject {
	const struct sl_fit_recording *recording;
	struct sl_fit_check check;
	uint64_t capacities[SL_FIT_CAPACITIES];
	unsigned capacity_count;
	struct sl_fit_answer *answers; /* one for each choice; NULL: no verdict */
	unsigned choice_count;
	struct sl_fit_choice choices[SL_FIT_CHOICES];
};

/* The recording as the choice's release would replay it; its lists are the recording's. */
struct sl_fit_recording sl_fit_under(const struct sl_fit_recording *recording, const struct sl_fit_choice *choice);
/* In how many ways the run may go on, by where the driver puts segments and in which order streams come; after 2.11 in one. */
unsigned sl_fit_orders(const struct sl_fit_recording *recording);
/* The placement `wanted`, or where that is SL_FIT_GIVEN, the likeliest one. */
enum sl_fit_ties sl_fit_way(const struct sl_fit_recording *recording, enum sl_fit_ties wanted);

/*
 * Each setting may take the time of sl_budget_begin.  Where one takes more, this recording and later ones of the process have no
 * answers.
 */
void sl_fit_ask(struct sl_fit_subject *subject, const struct sl_fit_recording *recording, const struct sl_fit_question *question);
bool sl_fit_spent(const struct sl_fit_subject *subject);
void sl_fit_subject_free(struct sl_fit_subject *subject);

/* "53.9 GiB", "52.1 to 52.6 GiB"; "unknown". */
const char *sl_fit_span(const struct sl_fit_answer *answer, char out[SL_FORMAT_SPAN_BYTES]);
/* fits, no, unknown; either: it depends on where the driver puts segments, or on the card. */
const char *sl_fit_word(const struct sl_fit_answer *answer, unsigned capacity);
/* Notes for a reader beside the verdicts, or instead of them: a sentence each. */
void sl_fit_notes(const struct sl_fit_subject *subject, bool of_allocator, void (*say)(void *context, const char *text),
		  void *context);
/* Behind a verdict of a window. */
#define SL_FIT_CARD  ": a card needs 0.5 to 1 GiB more, and the memory of other libraries"
#define SL_FIT_SPENT "the replay takes more of the processor's time than it may (STORMLOG_READ_SECONDS)"
/* Why there is no answer, in words. */
const char *sl_fit_why(const struct sl_fit_subject *subject, char *out, size_t size);
/* The settings as in the variable, "" for none; with another release as sl_fit_name. */
const char *sl_fit_text(const struct sl_fit_subject *subject, unsigned choice);
/* The settings as a user writes them, with another release before them. */
const char *sl_fit_name(const struct sl_fit_subject *subject, unsigned choice);
/* The verdict for a device without PyTorch's allocator; why: the reason in words. */
enum sl_fit_verdict sl_fit_judge_driver(const struct sl_fit_driver *driver, uint64_t capacity, char *why, size_t size);
/* The choice with the smallest sufficient capacity; the first where none is better or it is unknown. */
unsigned sl_fit_best(const struct sl_fit_subject *subject);
