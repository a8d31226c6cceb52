/* SPDX-License-Identifier: MIT */
/* Merges identical warnings of several processes into one line with a count. */
#pragma once

#include "analyzer/report/report.h"

/*
 * Joins warnings, from that number on, that differ only in the trace's name and in amounts: the first stands for all.  Lines
 * that tell of an offset in a file stay as they are.
 */
void sl_report_join_warnings(struct sl_report *report, size_t from);
