/* SPDX-License-Identifier: MIT */
/*
 * Packs, and snapshots of PyTorch's, which become a trace each (analyzer/snapshot/).  A pack is the files of a run as one small
 * file: SL_PACK_MAGIC, then one zstd frame of members: u32 length of the name, name, u64 size, bytes; a length of 0 ends them.
 * Little-endian.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_PACK_MAGIC "stormlog.pack\n\1" /* 15 bytes and the terminator */

/*
 * If the file is a pack or a snapshot: returns the folder with its content, which is made at the first call and removed when the
 * program ends. NULL: errno says why it cannot be opened; 0: it is no pack.  Of a torn pack, what is left is unpacked, and a
 * message says so.  A pack that TMPDIR has no room for ends the program with exit status 4 and a message: a part of it would be
 * taken for the run.
 */
const char *sl_archive_open(const char *path);

/* The file begins as a snapshot of PyTorch's does, whatever its name. */
bool sl_archive_is_snapshot(const char *path);

/* For who reads many packs: from now on one that finds no room is said and is NULL. */
void sl_archive_go_on(void);
/* errno of the last call of sl_archive_open, where the pack found no room; 0: it did. */
int sl_archive_unsaved(void);

/* True: the file was unpacked from a pack of which a part is missing. */
bool sl_archive_is_torn(const char *file);
/* The name in its pack of a file that was unpacked; another path as it is. */
const char *sl_archive_member(const char *file);

/* Removes that folder earlier, for callers that open one pack after the other.  Nothing from it may be in use any more. */
void sl_archive_close(const char *path);
