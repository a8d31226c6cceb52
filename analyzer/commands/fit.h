/* SPDX-License-Identifier: MIT */
/* The results of the verb fit: every recording under every choice of settings, and how they are printed. */
#pragma once

#include "analyzer/base/map.h"
#include "analyzer/base/vector.h"
#include "analyzer/fit/answer.h"
#include "analyzer/fit/proof.h"
#include "analyzer/fit/other_settings.h"
#include "analyzer/fit/vary.h"

/* What one choice of settings needs at each value of --vary. */
struct sl_fit_varied {
	const char *settings;
	struct sl_fit_curve curve;
};

struct sl_fit_result {
	struct sl_fit_process *processes;
	char **sessions;
	unsigned process_count;
	SL_VECTOR(struct sl_fit_recording *) recordings; /* of all processes; and what calls of the driver tell of them */
	SL_VECTOR(const struct sl_fit_driver *) drivers;
	struct sl_fit_subject *subjects;
	struct sl_fit_other_settings *insteads; /* one for each subject */
	unsigned subject_count;
	struct sl_fit_proof *proofs; /* of all recordings, for --changes */
	unsigned proof_count;
	const struct sl_fit_question *question;
	const char *vary; /* NULL: not asked for */
	bool layout;	  /* segments where memory ran out are drawn */
	char *need;	  /* where no capacity has a verdict: what the report says is needed; NULL: not known */
	SL_VECTOR(struct sl_fit_varied) varied;
	struct sl_map varied_at; /* settings -> index of `varied` + 1 */
	unsigned without_value;	 /* recordings that give no number */
	uint64_t capacities[SL_FIT_CAPACITIES];
	unsigned capacity_count;
};

/* Called after every recording was replayed.  False: fewer than two values are known. */
bool sl_fit_vary(struct sl_fit_result *result);
void sl_fit_vary_print(const struct sl_fit_result *result);
struct sl_json;
void sl_fit_vary_json(struct sl_json *j, const struct sl_fit_result *result);

/* fit_picture.c: the line of an operation in the recording; "" without a stack. */
const char *sl_fit_line(const struct sl_fit_recording *recording, size_t at, char *text, size_t size);

/* fit_picture.c: the segments when memory ran out. */
struct sl_terminal;
void sl_fit_picture_print(const struct sl_fit_recording *recording, const struct sl_fit_picture *picture,
			  const struct sl_terminal *to);
void sl_fit_picture_json(struct sl_json *j, const struct sl_fit_recording *recording, const struct sl_fit_picture *picture);

void sl_fit_print(const struct sl_fit_result *result);
void sl_fit_print_json(const struct sl_fit_result *result);
