/* SPDX-License-Identifier: MIT */
/* What the verb fit has to say: every recording under every setting, and how it is printed. */
#ifndef ANALYZER_COMMANDS_FIT_H
#define ANALYZER_COMMANDS_FIT_H

#include "analyzer/fit/run.h"

#define SL_FIT_CAPACITIES 64
#define SL_FIT_CHOICES	  32

struct sl_fit_choice {
	const char *text; /* NULL: as recorded */
	struct sl_fit_settings settings;
};

/* One recording under one choice. */
struct sl_fit_answer {
	struct sl_fit_outcome free, other; /* without an end; with addresses that fall, where the release cares */
	struct sl_fit_outcome at[SL_FIT_CAPACITIES];
	bool ambiguous[SL_FIT_CAPACITIES]; /* the two orders of equal blocks disagree */
	struct sl_fit_scan scan;
	uint64_t other_from; /* always_from of the other order; SL_UNKNOWN: the same */
};

struct sl_fit_subject {
	const struct sl_fit_recording *recording;
	struct sl_fit_check check;
	uint64_t capacities[SL_FIT_CAPACITIES];
	unsigned capacity_count;
	struct sl_fit_answer *answers; /* by choice; NULL: no verdict */
	unsigned choice_count;
	struct sl_fit_choice choices[SL_FIT_CHOICES];
};

struct sl_fit_result {
	struct sl_fit_process *processes;
	char **sessions;
	unsigned process_count;
	struct sl_fit_subject *subjects;
	unsigned subject_count;
	bool of_allocator;
};

/* The settings as a user reads them. */
const char *sl_fit_name(const struct sl_fit_subject *subject, unsigned choice);
void sl_fit_print(const struct sl_fit_result *result);
void sl_fit_print_json(const struct sl_fit_result *result);

#endif
