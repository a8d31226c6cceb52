/* SPDX-License-Identifier: MIT */
/*
 * How often the program's own loop went round in a window.  A loop shows where stacks part: the outermost function that asks from
 * several lines comes back to a line.  A module's forward pass, an optimizer's step and a constructor are each one round of the
 * program, with any number of layers and parameters.
 */
#pragma once

#include "analyzer/snapshot/rebuild.h"

/* At least 1; 1: no more than that is seen. */
uint64_t sl_snapshot_rounds(const struct sl_rebuilt *rebuilt);
