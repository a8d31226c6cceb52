/* SPDX-License-Identifier: MIT */
/*
 * What a child process gives up, for good, before it looks into a pack: memory and time beyond a limit, and every system call
 * except those for reading, computing and writing to open files.
 */
#pragma once

#include <stdbool.h>

#define SL_CAGE_FILE_MAX (64ull << 20) /* a file that the child writes once it is closed */

/* Limits memory, time and file sizes.  Called before a byte of the pack is read. */
bool sl_cage_limits(void);
/*
 * From here on the process cannot create, rename, remove or open a file for writing, start a program or use the network.
 * False: errno.
 */
bool sl_cage_close(void);
