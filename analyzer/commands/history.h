/* SPDX-License-Identifier: MIT */
/* runs --history: one quantity over the runs, and the runs where it changed. */
#pragma once

#include "analyzer/commands/catalogued.h"

enum { SL_HISTORY_ANY = 5 }; /* the largest of all that the words of --of name */

/* name: a figure of runs, or a part of the name of a place, label or library, or its key.  Returns an exit status. */
int sl_history_show(struct sl_catalogued *catalogued, const char *name, unsigned of, bool json);
