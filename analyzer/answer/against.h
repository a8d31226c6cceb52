/* SPDX-License-Identifier: MIT */
/* stormlog-run --against in words: which line asks for more than in another environment (doc/cases/fitted-before.md). */
#pragma once

#include "analyzer/answer/largest.h"
#include "analyzer/report/report.h"

/*
 * [0] of the other environment, [1] of this one.  asked: on the card that was asked for.  ran: what is compared, which is the same,
 * or on a card with room for both.  report: of `ran`, up to when its tensors were most.  The caller frees the result.
 */
struct sl_answers *sl_answer_against(struct sl_trial *const asked[2], struct sl_trial *const ran[2], struct sl_report report[2]);
