/* SPDX-License-Identifier: MIT */
/* Rules held against what is followed, look by look; what turns goes to the reader's own function.  One thread. */
#ifndef ANALYZER_WATCH_WATCH_H
#define ANALYZER_WATCH_WATCH_H

#include "analyzer/follow/follow.h"
#include "analyzer/watch/rule.h"

/* One turn of one rule.  Texts live until the function returns. */
struct sl_alert {
	const struct sl_rule *rule;
	const struct sl_followed *followed;
	const char *state, *uuid; /* raised, cleared, ended (with its process); uuid NULL: unknown */
	int device;		  /* -1: of the process */
	double value;		  /* infinite: never */
	uint64_t unix_ns;
	const char *place; /* who holds the memory, or makes it grow; "": nobody is known */
	const char *text;  /* a sentence */
};

struct sl_watch;
struct sl_watch *sl_watch_new(const struct sl_rule *rules, size_t count);
void sl_watch_free(struct sl_watch *watch);

/* After each poll of `follow`.  unseen: sl_trace_unseen of a process has something else to say than before; may be NULL. */
void sl_watch_look(struct sl_watch *watch, const struct sl_follow *follow,
		   void (*turned)(void *context, const struct sl_alert *alert),
		   void (*unseen)(void *context, const struct sl_followed *followed), void *context);

#endif
