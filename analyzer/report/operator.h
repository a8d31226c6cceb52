/* SPDX-License-Identifier: MIT */
/*
 * What ran when a stack asked for memory, and why that takes much: a row of operators.def.  A recorded failure has the native
 * frames that it needs.  A block of PyTorch has only its Python frames, and then only functions of packages are known.
 */
#pragma once

#include "analyzer/report/report.h"

/* Texts are static.  makes: "attention scores"; why: a sentence without its end; change: an imperative that "at LINE" follows. */
struct sl_operator {
	const char *name, *makes, *why, *change;
	bool joins; /* it has two operands, and its result is larger than both */
	bool maps;  /* it is a layer of a network; the change is at the line that calls the network */
};

/* Looks at the frames inside the program's innermost own line.  NULL: no row says what ran.  Main thread only. */
const struct sl_operator *sl_operator_of(struct sl_process *process, struct sl_stack stack);
