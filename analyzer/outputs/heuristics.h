/* SPDX-License-Identifier: MIT */
#pragma once

#include "analyzer/report/report.h"
#include "analyzer/base/json.h"

/* The member leak_heuristics of a process. */
void sl_heuristics_put(struct sl_json *j, const struct sl_process *process);
