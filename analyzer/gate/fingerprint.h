/* SPDX-License-Identifier: MIT */
/*
 * A name for a place that allocates which stays the same when lines move, when programs and libraries are built again, and on other
 * machines: no addresses, offsets, line numbers, paths or versions go into it.  In a stack with lines of the user's own Python only
 * those count, by file name and function; else all Python lines; else the native functions, or their modules where the objects are
 * not here.  The kind of memory and the library that asked are part of it.  A function that is renamed or moved to another file is
 * another place.
 */
#pragma once

#include "analyzer/report/report.h"

#define SL_FINGERPRINT_BYTES 17

void sl_fingerprint(char out[SL_FINGERPRINT_BYTES], unsigned kind, const char *library, const struct sl_stack_frame *frames,
		    unsigned count);

/* libcublas.so.13.1 -> libcublas.so; bytes of out as snprintf. */
void sl_fingerprint_library(char *out, size_t size, const char *library);
