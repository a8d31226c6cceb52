/* SPDX-License-Identifier: MIT */
/* Checks rules against followed processes at each look; changes of state go to the caller's function.  One thread. */
#pragma once

#include "analyzer/follow/figures.h"
#include "analyzer/watch/rule.h"

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
