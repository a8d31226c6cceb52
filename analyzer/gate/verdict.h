/* SPDX-License-Identifier: MIT */
/* Compares a run with limits and a baseline; one outcome for each thing compared. */
#pragma once

#include "analyzer/gate/limits.h"
#include "analyzer/gate/measure.h"

enum sl_level {
	SL_LEVEL_PASS,
	SL_LEVEL_UNKNOWN, /* the run has no measurement to compare */
	SL_LEVEL_NOTE,	  /* for information: never fails */
	SL_LEVEL_WARNING,
	SL_LEVEL_CRITICAL,
};
extern const char *const sl_level_names[]; /* pass, unknown, note, warning, critical */

struct sl_outcome {
	const char *rule; /* name of a row of sl_rules */
	char *subject;	  /* what was compared: "peak", "step_#", "train.py:97 remember" */
	char *message;	  /* one line that begins with the numbers */
	char *file;	  /* source file that a CI system points at; NULL: none */
	uint32_t line;
	char *fingerprint; /* fingerprint of the stack (fingerprint.h); NULL: none */
	enum sl_level level;
	bool fails; /* this outcome makes the exit status 1 */
};

/* Every rule, for SARIF and the manual; ended by a NULL name. */
struct sl_gate_rule {
	const char *name, *summary;
};
extern const struct sl_gate_rule sl_rules[];

struct sl_outcomes {
	SL_VECTOR(struct sl_outcome) list;
	unsigned failures, unknown;
};

/* Class of findings of Stormlog's gap analysis. */
#define SL_GATE_GAP "gap"

/* baseline NULL: none. */
void sl_verdict(struct sl_outcomes *outcomes, struct sl_report *report, const struct sl_measures *measures,
		const struct sl_limits *limits, const struct sl_measures *baseline);
void sl_verdict_free(struct sl_outcomes *outcomes);
