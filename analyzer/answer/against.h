/* SPDX-License-Identifier: MIT */
/* stormlog-run --against in words: which line asks for more than in another environment (doc/cases/fitted-before.md). */
#pragma once

#include "analyzer/answer/largest.h"
#include "analyzer/report/report.h"

/* A run of the same command: [0] in the other environment, [1] in this one. */
struct sl_against_side {
	const struct sl_trial *trial, *ran; /* on the card that was asked for, and what is compared */
	struct sl_report *report;	    /* of `ran`, up to when its tensors were most */
	char *packages;			    /* what is installed: a name, a blank and a version a line; it is cut */
};

/* The caller frees it. roomy: both were compared on a card with more memory than the one that was asked for. */
struct sl_answers *sl_answer_against(const struct sl_against_side side[2], bool roomy);
