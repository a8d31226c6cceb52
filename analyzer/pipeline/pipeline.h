/* SPDX-License-Identifier: MIT */
/*
 * From paths to everything there is to say: images of the chosen run are replayed over threads, one process per
 * thread at a time, then joined in the order of their names; then the analyses run.
 */
#ifndef ANALYZER_PIPELINE_PIPELINE_H
#define ANALYZER_PIPELINE_PIPELINE_H

#include "analyzer/report/report.h"

enum sl_drive_result { SL_DRIVE_FINE, SL_DRIVE_NO_PATH, SL_DRIVE_NO_RUN, SL_DRIVE_UNREADABLE };

/* Folders and files of `paths` hold at least one trace file or ring.  The result is the caller's. */
bool sl_drive_is_native(char *const *paths, unsigned count);
enum sl_drive_result sl_drive(struct sl_report *report, char *const *paths, unsigned count, const struct sl_drive_options *options);

#endif
