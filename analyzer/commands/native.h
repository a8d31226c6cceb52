/* SPDX-License-Identifier: MIT */
/* What the verbs over native traces share. */
#ifndef ANALYZER_COMMANDS_NATIVE_H
#define ANALYZER_COMMANDS_NATIVE_H

#include "analyzer/commands/commands.h"
#include "analyzer/pipeline/pipeline.h"
#include "analyzer/trace/images.h"

/* Drive the paths, say what is wrong on stderr; an exit status of commands.h. */
int sl_native_open(struct sl_report *report, char **paths, unsigned count, const struct sl_pipeline_options *options);

/* The same paths once more, for what only the first time told to look for; what is damaged was said then. */
int sl_native_again(struct sl_report *report, char **paths, unsigned count, const struct sl_pipeline_options *options);

/* All traces at the paths (NULL at their end) by run, for verbs that do not replay them; an exit status, said, or -1: go on. */
int sl_native_images(struct sl_images *images, char **paths);

/* The index of a run of grouped images: of NULL the newest; "all": -1, a name that is none: -2. */
int sl_native_choose(const struct sl_images *images, const char *run);

/* The file of --suppressions; false: why not is said. */
struct sl_suppressions;
bool sl_native_suppressions(struct sl_suppressions *suppressions, const char *path);

#endif
