/* SPDX-License-Identifier: MIT */
/*
 * A leak by births and deaths.  leak_findings.c joins stacks of one line, judges the window of a snapshot, and measures how much a
 * place keeps, and how fast.  It asks two files:
 *  - leak_trend.c judges one place.
 *  - leak_clock.c finds what ticks while the loop around it goes on, and counts rounds.
 */
#pragma once

#include "analyzer/analyses/leak_windows.h"
#include "analyzer/report/report.h"

/* True: the place keeps memory, or may; `line` says how.  tested: how many places are judged. */
bool sl_leak_judge(struct sl_process *process, const struct sl_track *track, unsigned tested, struct sl_leak_line *line);

/* True: what the place kept, as bytes or as sl_leak_by_count says, is enough to be told. */
bool sl_leak_is_enough(const struct sl_process *process, const struct sl_track *track, double kept_amount);

/* True: counted in numbers, not bytes: objects, and imports of unknown size. */
bool sl_leak_by_count(const struct sl_track *track);

/* Also what each birth and each second adds.  series: what the place kept over time. */
void sl_leak_measure(struct sl_leak_line *line, const struct sl_model *model, const struct sl_leak_windows *series);

/* Finds the process's rounds: steps with a label, else the number of births that most places have in common. */
void sl_leak_find_rounds(struct sl_process *process);

/* The rounds between the first birth of the track and its last; 0: not known, or steps have a label. */
uint64_t sl_leak_rounds(const struct sl_process *process, const struct sl_track *track);
