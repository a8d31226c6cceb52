/* SPDX-License-Identifier: MIT */
/*
 * Runs the commands of rules.  The runner is a process that is forked before the first trace is opened and never sees one, because
 * a process that reads traces may start no program.  It has the commands from the rules; a message only tells it which rule, and
 * the texts for the command's environment and input.  It drops a message of any other form, and control characters in texts.
 *
 * Commands run one after the other.  One that takes longer than a minute is killed.  Messages for which the socket has no room are
 * left out, with a line on stderr.
 */
#pragma once

#include "analyzer/watch/watch.h"

/* To be called before a trace is read and before the program confines itself.  The rules must outlive it. */
struct sl_runner;
struct sl_runner *sl_runner_new(const struct sl_rule *rules, size_t count);
void sl_runner_free(struct sl_runner *runner); /* gives commands under way five seconds */

void sl_runner_send(struct sl_runner *runner, const struct sl_alert *alert);
