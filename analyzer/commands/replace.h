/* SPDX-License-Identifier: MIT */
/* What the outputs of a verb may replace: a former output of the same kind, and never an input. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "analyzer/trace/rights.h"

/*
 * False: one of the files that the verb writes would take the place of something else; `why` is a sentence for people.  What is
 * no regular file (folders, devices, pipes) is not looked at, and of a link only where it leads: links are replaced themselves.
 */
bool sl_replace_may(const struct sl_rights *rights, char *why, size_t size);

/* True: the folder in which `path` lies is one of the inputs or below one. */
bool sl_replace_lies_inside(const char *path, char *const *inputs);
