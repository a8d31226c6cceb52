/* SPDX-License-Identifier: MIT */
/*
 * The header of a watched process's trace, made from its /proc and environment: the same that the agent in it would have
 * written.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of the map; 0: it does not fit.  *rank: within its run, -1 unknown.  One thread only: `environ` is replaced by the
 * process's during the call.
 */
size_t sl_header_of(long pid, uint8_t *bytes, size_t size, long *rank);
/* Reads a file of /proc/PID as far as it fits into the buffer; returns its length. */
size_t sl_header_read_of(long pid, const char *name, char *buffer, size_t size);
