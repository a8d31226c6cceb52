/* SPDX-License-Identifier: MIT */
/* Decides which files the outputs of a verb may replace: only a former output of the same kind, never an input. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "analyzer/trace/rights.h"

/*
 * False: an output would replace something else, another output or a link included; `why` is a sentence for people.  Folders,
 * devices and pipes are not checked.
 */
bool sl_replace_may(const struct sl_rights *rights, char *why, size_t size);

/* True: the folder in which `path` lies is one of the inputs or below one. */
bool sl_replace_lies_inside(const char *path, char *const *inputs);

/* True: it also has a name under which files in folders are read. */
bool sl_replace_is_read(const char *path, char *const *inputs);
