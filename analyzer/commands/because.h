/* SPDX-License-Identifier: MIT */
/* How the verb diff shows the terms of two peaks. */
#pragma once

#include "analyzer/gate/because.h"

struct sl_json;

/* Terms that changed, largest first, and the lines under the requests: at most `rows` of them. */
void sl_because_print(const struct sl_because *because, unsigned rows);
/* The member "because"; because NULL: null. */
void sl_because_json(struct sl_json *j, const struct sl_because *because);
