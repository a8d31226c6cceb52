/* SPDX-License-Identifier: MIT */
/* Each verb gives up the rights that it does not need before it opens its first input (trace/rights.h). */
#pragma once

#include "analyzer/trace/rights.h"

/*
 * Called once, before other threads start.  Ends the program with SL_EXIT_USAGE if an output would replace an input or a file that
 * is not a former output (replace.h).  Prints a note if the kernel cannot confine, and goes on.  From here on a signal removes
 * unfinished files.
 */
void sl_verb_rights(const struct sl_rights *rights);
