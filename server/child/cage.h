/* SPDX-License-Identifier: MIT */
/*
 * What a child gives up before it looks into a pack: memory and time beyond its share, every system call but those of
 * a program that reads, computes and writes to what it has open.  For good.
 */
#ifndef SERVER_CHILD_CAGE_H
#define SERVER_CHILD_CAGE_H

#include <stdbool.h>

/* Memory, time, sizes of files.  Before a byte of the pack is read. */
bool sl_cage_limits(void);
/* From here on no file is made, renamed, removed or opened to write, nothing started, nobody talked to.  false: errno. */
bool sl_cage_close(void);

#endif
