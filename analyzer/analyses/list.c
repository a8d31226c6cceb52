/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "analyzer/analyses/analysis.h"

#define ANALYSIS(name, file) extern const struct sl_analysis sl_analysis_##name;
#include "analyzer/report/found.def"

#define ANALYSIS(name, file) &sl_analysis_##name,
const struct sl_analysis *const sl_analyses[] = {
#include "analyzer/report/found.def"
	NULL,
};
