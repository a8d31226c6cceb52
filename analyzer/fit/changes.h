/* SPDX-License-Identifier: MIT */
/* The table of the rules: what each kind of change does to the requests of a program, and where. */
#pragma once

#include "analyzer/fit/change.h"

extern const struct sl_fit_rule sl_fit_rules[]; /* ended by kind NULL */
