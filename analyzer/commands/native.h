/* SPDX-License-Identifier: MIT */
/* Opens the traces that a verb was given, with the messages and exit statuses that all verbs share. */
#pragma once

#include "analyzer/commands/commands.h"
#include "analyzer/exports/archive_write.h"
#include "analyzer/pipeline/pipeline.h"
#include "analyzer/trace/images.h"

#define SL_NATIVE_NO_TELEMETRY "traces, not telemetry; report writes theirs to analysis/telemetry"

/* Prints warnings from `first` on, before `end`, on stderr; of very many the first. */
void sl_native_say(const struct sl_report *report, size_t first, size_t end);

/* Reads and analyses the paths, prints problems on stderr; returns an exit status of commands.h. */
int sl_native_open(struct sl_report *report, char **paths, unsigned count, const struct sl_pipeline_options *options);

/* Reads the same paths again, with options that depend on the first reading; prints no damage again. */
int sl_native_again(struct sl_report *report, char **paths, unsigned count, const struct sl_pipeline_options *options);

/*
 * All traces at the paths (ended by NULL), grouped by run, for verbs that do not replay; an exit status after printing why, or
 * -1: go on.
 */
int sl_native_images(struct sl_images *images, char **paths);

/* Reads the file of --suppressions.  False: the reason was printed. */
struct sl_suppressions;
bool sl_native_suppressions(struct sl_suppressions *suppressions, const char *path);

/*
 * Writes a pack of a run (-1: of all) as exports/archive_write.h does, and returns an exit status; what failed is said on stderr.
 * It is SL_EXIT_UNREADABLE, and nothing is written, where no trace can be read.
 */
int sl_native_pack(const struct sl_images *images, int run, const char *path, const uint8_t *key, struct sl_archived *packed);

/* After writing `path`: SL_EXIT_UNREADABLE, and a message, where something that lies there is not in it; SL_EXIT_FINE: all is. */
int sl_native_left_out(const struct sl_images *images, const struct sl_archived *packed, const char *path);

/* The same where it is known that something is not in it. */
int sl_native_partly(const char *path);
