/* SPDX-License-Identifier: MIT */
#ifndef ANALYZER_OUTPUTS_HEURISTICS_H
#define ANALYZER_OUTPUTS_HEURISTICS_H

#include "analyzer/drive.h"
#include "analyzer/json.h"

/* The member leak_heuristics of a process. */
void sl_heuristics_put(struct sl_json *j, const struct sl_process *process);

#endif
