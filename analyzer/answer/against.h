/* SPDX-License-Identifier: MIT */
/* stormlog-run --against in words: which line asks for more than in another environment (doc/cases/fitted-before.md). */
#pragma once

#include "analyzer/answer/largest.h"
#include "analyzer/report/report.h"

/*
 * [0] is of the other environment, [1] of this one.  `asked` are the runs on the card that the user named.  `ran` are the runs to
 * compare: the same ones, or runs on a card with room for both.  `report` has each of `ran` up to the moment of its most tensors.
 * The caller frees the result.
 */
struct sl_answers *sl_answer_against(struct sl_trial *const asked[2], struct sl_trial *const ran[2], struct sl_report report[2]);
