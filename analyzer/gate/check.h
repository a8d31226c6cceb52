/* SPDX-License-Identifier: MIT */
/* Limits and a baseline held against a run: one outcome per thing that was looked at. */
#ifndef ANALYZER_GATE_CHECK_H
#define ANALYZER_GATE_CHECK_H

#include "analyzer/gate/limits.h"
#include "analyzer/gate/measure.h"

enum sl_level {
	SL_LEVEL_PASS,
	SL_LEVEL_UNKNOWN, /* this run cannot tell: nothing was measured */
	SL_LEVEL_WARNING,
	SL_LEVEL_CRITICAL,
};
extern const char *const sl_level_names[]; /* pass, unknown, warning, critical */

struct sl_outcome {
	const char *rule; /* of sl_rules */
	char *subject;	  /* what was looked at: "peak", "step_#", "train.py:97 remember" */
	char *message;	  /* one line: numbers first */
	char *file;	  /* NULL: no line of code to point at */
	uint32_t line;
	char *fingerprint; /* of the stack; NULL */
	enum sl_level level;
	bool fails; /* this one makes the exit status 1 */
};

/* Every rule there is, for SARIF and the manual; name NULL ends it. */
struct sl_gate_rule {
	const char *name, *summary;
};
extern const struct sl_gate_rule sl_rules[];

struct sl_outcomes {
	SL_VECTOR(struct sl_outcome) list;
	unsigned failures, unknown;
};

/* baseline NULL: none. */
void sl_check(struct sl_outcomes *outcomes, struct sl_report *report, const struct sl_measures *measures,
	      const struct sl_limits *limits, const struct sl_measures *baseline);
void sl_outcomes_free(struct sl_outcomes *outcomes);

#endif
