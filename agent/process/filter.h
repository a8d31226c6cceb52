/* SPDX-License-Identifier: MIT */
/* STORMLOG_ONLY: a glob that is matched here, because fnmatch() may allocate, and the first GPU call may come from an allocator. */
#pragma once

#include <stdbool.h>

/* True: the glob (* ? [a-z] [!a-z]; bytes, not characters) matches the whole path or its last component. */
bool sl_filter_matches(const char *glob, const char *path);

/* True: it has what only regular expressions have, so the user meant one. */
bool sl_filter_is_regex(const char *glob);
