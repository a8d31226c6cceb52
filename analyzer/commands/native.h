/* SPDX-License-Identifier: MIT */
/* What the verbs over native traces share. */
#ifndef ANALYZER_COMMANDS_NATIVE_H
#define ANALYZER_COMMANDS_NATIVE_H

#include "analyzer/commands.h"
#include "analyzer/drive.h"

/* Drive the paths, say what is wrong on stderr; an exit status of commands.h. */
int sl_native_open(struct sl_report *report, char **paths, unsigned count, const struct sl_drive_options *options);

/* The value of an option at argv[*at], as --name=VALUE, --name VALUE or -nVALUE; NULL: it is another one. */
const char *sl_native_argument(int argc, char **argv, int *at, const char *name, char letter);

#endif
