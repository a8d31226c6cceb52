/* SPDX-License-Identifier: MIT */
/*
 * STORMLOG_ONLY. The expression is matched directly, by backtracking: regcomp allocates, and the first GPU call
 * of a process may come from its allocator or while that holds a lock.
 */
#pragma once

#include <stdbool.h>

/*
 * True: the extended regular expression matches anywhere in `text`. Knows . [...] [^...] ( ) | * + ? ^ $ and \ before any
 * character; bytes, not characters; no {m,n}, no [:class:], no back references.  After a bounded number of steps it gives up and
 * says no. `\` at the end and unbalanced brackets match nothing.
 */
bool sl_filter_matches(const char *regex, const char *text);

/* True: the expression is well-formed. */
bool sl_filter_regex_valid(const char *regex);
