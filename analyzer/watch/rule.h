/* SPDX-License-Identifier: MIT */
/*
 * A rule of `watch`: NAME OP VALUE [for TIME] [=> message | => command LINE], as
 *
 *	used > 95% for 30s
 *	full-in < 10min => command scancel $SLURM_JOB_ID
 *
 * A table in rule.c has the names and their units.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sl_metric {
	SL_METRIC_USED,
	SL_METRIC_LIVE,
	SL_METRIC_RESERVED,
	SL_METRIC_HIDDEN,
	SL_METRIC_FREE,
	SL_METRIC_GROWTH,
	SL_METRIC_FULL_IN,
	SL_METRIC_OOMS,
	SL_METRIC_CALL_AGE,
	SL_METRIC_UNLIKE,
	SL_METRIC_COUNT,
};

/* bytes; share of the device, 0 to 1; bytes per second; bytes per step; seconds; a number */
enum sl_unit { SL_UNIT_BYTES, SL_UNIT_SHARE, SL_UNIT_RATE, SL_UNIT_STEP, SL_UNIT_SECONDS, SL_UNIT_NUMBER };

struct sl_rule {
	enum sl_metric metric;
	bool above, or_equal; /* above: the operator is > or >= */
	enum sl_unit unit;    /* unit of the value, as its text says */
	double value;
	uint64_t for_ns;
	const char *command; /* a line of shell, a part of text; NULL: the rule only prints a message */
	char *text;	     /* as written; the condition is its first `condition` bytes */
	size_t condition;
};

/* NULL, or a static text that says what is wrong.  Call sl_rule_free even then. */
const char *sl_rule_parse(struct sl_rule *rule, const char *text);
void sl_rule_free(struct sl_rule *rule);

const char *sl_metric_name(enum sl_metric metric);
/* True for a rule about a whole process instead of one device. */
bool sl_metric_of_process(enum sl_metric metric);
/* A value as text for people; out holds SL_FORMAT_BYTES and eight more. */
const char *sl_unit_format(enum sl_unit unit, double value, char *out);

/* The state of one rule for one device of one process. */
struct sl_alarm {
	bool raised;
	bool unknown;	   /* since then its value has been unknown, and not beyond the rule's */
	uint64_t since_ns; /* since when it has been true without a break (false, when raised); 0: it is not */
};
enum sl_turn { SL_TURN_NONE, SL_TURN_RAISED, SL_TURN_CLEARED, SL_TURN_LOST };

/*
 * One look.  The alarm is raised when the rule holds at every look of `for`; it is cleared when the value has been beyond the
 * rule's value by a tenth, on the good side, for as long.  An unknown value (NAN) raises nothing; an alarm is lost when its value
 * has been unknown for as long.
 */
enum sl_turn sl_alarm_look(struct sl_alarm *alarm, const struct sl_rule *rule, double value, uint64_t now_ns);
