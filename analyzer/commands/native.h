/* SPDX-License-Identifier: MIT */
/* What the verbs over native traces share. */
#pragma once

#include "analyzer/commands/commands.h"
#include "analyzer/pipeline/pipeline.h"
#include "analyzer/trace/images.h"

/* Reads and analyses the paths, prints problems on stderr; returns an exit status of commands.h. */
int sl_native_open(struct sl_report *report, char **paths, unsigned count, const struct sl_pipeline_options *options);

/* The same; of several paths, all runs where --run names none. */
int sl_native_open_all(struct sl_report *report, char **paths, unsigned count, struct sl_pipeline_options *options);

/* Reads the same paths again, for what only the first reading could tell to look for; damage has been printed already. */
int sl_native_again(struct sl_report *report, char **paths, unsigned count, const struct sl_pipeline_options *options);

/*
 * All traces at the paths (ended by NULL), grouped by run, for verbs that do not replay; an exit status after printing why, or
 * -1: go on.
 */
int sl_native_images(struct sl_images *images, char **paths);

/* The index of a run: NULL the newest; "all": -1; an unknown name, after it was said: -2. */
int sl_native_choose(const struct sl_images *images, const char *run);

/* Reads the file of --suppressions; false: why not was printed. */
struct sl_suppressions;
bool sl_native_suppressions(struct sl_suppressions *suppressions, const char *path);
