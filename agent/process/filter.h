/* SPDX-License-Identifier: MIT */
/*
 * STORMLOG_ONLY and STORMLOG_RANKS.  regcomp allocates, and the first GPU call of a process may be made by its
 * allocator or below a lock of it, so the expression is matched as it stands, by backtracking.
 */
#pragma once

#include <stdbool.h>

/*
 * Does the extended regular expression match anywhere in `text`?  Knows . [...] [^...] ( ) | * + ? ^ $ and \ before
 * any character; bytes, not characters; no {m,n}, no [:class:], no back references.  After a bounded number of
 * steps it gives up and says no.  `\` at the end and unbalanced brackets match nothing.
 */
bool sl_filter_matches(const char *regex, const char *text);

/* Is `number` in a list as "0,2,4-7"? */
bool sl_filter_lists(const char *list, unsigned number);

/* True: the list, or the expression, can be read. */
bool sl_filter_list_valid(const char *list);
bool sl_filter_regex_valid(const char *regex);
