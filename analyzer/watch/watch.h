/* SPDX-License-Identifier: MIT */
/* Checks rules against followed processes at each look; changes of state go to the caller's function.  One thread. */
#pragma once

#include "analyzer/follow/follow.h"

/*
 * A rule of `watch`: NAME OP VALUE [for TIME] [=> message | => command LINE], as
 *
 *	used > 95% for 30s
 *	full-in < 10min => command scancel $SLURM_JOB_ID
 *
 * A table in watch.c has the names and their units.
 */

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

/* One change of state of one rule.  Texts live until the function returns. */
struct sl_alert {
	const struct sl_rule *rule;
	const struct sl_followed *followed;
	const char *state; /* raised, cleared, ended (with its process), unknown (its value is no longer known) */
	const char *uuid;  /* NULL: unknown */
	int device;	   /* -1: the rule is about the process */
	double value;	   /* may be infinite: "never"; NAN: ended or unknown */
	uint64_t unix_ns;
	const char *place; /* who holds the memory or makes it grow; "": not known */
	const char *text;  /* a sentence */
};

/* One line of JSON, without its end (schemas/alert.schema.json). */
void sl_alert_write(FILE *out, const struct sl_alert *alert);

struct sl_watch;
struct sl_watch *sl_watch_new(const struct sl_rule *rules, size_t count);
void sl_watch_free(struct sl_watch *watch);

/* To be called after each poll of `follow`.  unseen: called when sl_trace_unseen of a process changes; may be NULL. */
void sl_watch_look(struct sl_watch *watch, const struct sl_follow *follow,
		   void (*turned)(void *context, const struct sl_alert *alert),
		   void (*unseen)(void *context, const struct sl_followed *followed), void *context);

/*
 * What the watch saw of a process's device, by its number, for a reader that shows it.  NULL: it has not looked at the process
 * yet, or the process has too many devices.  The result belongs to the watch.
 */
const struct sl_outlook *sl_watch_outlook(const struct sl_watch *watch, const struct sl_followed *followed, int device);
/* The place that fills the device, by its ordinal, as alerts name it; "": none. */
void sl_watch_full_by(const struct sl_watch *watch, struct sl_followed *followed, int device, char *out, size_t size);

/*
 * Runs the commands of rules.  The runner is a process that is forked before the first trace is opened and never sees one, because
 * a process that reads traces may start no program.  It has the commands from the rules; a message only tells it which rule, and
 * the texts for the command's environment and input.  It drops a message of any other form, and control characters in texts.
 *
 * Commands run one after the other.  One that takes longer than a minute is killed.  Messages for which the socket has no room are
 * left out, with a line on stderr.
 */

/* To be called before a trace is read and before the program confines itself.  The rules must outlive it. */
struct sl_runner;
struct sl_runner *sl_runner_new(const struct sl_rule *rules, size_t count);
void sl_runner_free(struct sl_runner *runner); /* gives commands under way five seconds */

void sl_runner_send(struct sl_runner *runner, const struct sl_alert *alert);
