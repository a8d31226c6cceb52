/* SPDX-License-Identifier: MIT */
#ifndef ANALYZER_OUTPUTS_HEURISTICS_H
#define ANALYZER_OUTPUTS_HEURISTICS_H

#include "analyzer/report/report.h"
#include "analyzer/base/json.h"

/* The member leak_heuristics of a process. */
void sl_heuristics_put(struct sl_json *j, const struct sl_process *process);

#endif
