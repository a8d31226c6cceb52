/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "analyzer/analyses/analysis.h"

extern const struct sl_analysis sl_analysis_leaks, sl_analysis_growth;

const struct sl_analysis *const sl_analyses[] = {&sl_analysis_leaks, &sl_analysis_growth, NULL};
