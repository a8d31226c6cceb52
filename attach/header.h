/* SPDX-License-Identifier: MIT */
/* Who a watched process is: the header of its trace, from its /proc and environment, as the agent in it would have written it. */
#ifndef ATTACH_HEADER_H
#define ATTACH_HEADER_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the map, 0: it does not fit.  *rank: of its run, -1 unknown.  One thread: `environ` is the process's meanwhile. */
size_t sl_header_of(long pid, uint8_t *bytes, size_t size, long *rank);
/* A file of /proc/PID, whole as far as it fits; its length. */
size_t sl_header_read_of(long pid, const char *name, char *buffer, size_t size);

#endif
