/* SPDX-License-Identifier: MIT */
/*
 * Packs: the files of a run as one small file.  SL_PACK_MAGIC, then one zstd frame of members: u32 length of the
 * name, name, u64 size, bytes; a length of 0 ends them.  Little-endian.
 */
#ifndef ANALYZER_TRACE_ARCHIVE_H
#define ANALYZER_TRACE_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#define SL_PACK_MAGIC "stormlog.pack\n\1" /* 15 bytes and the terminator */

/*
 * When the file is a pack: the folder with what is in it, made at the first call and removed when the program ends.
 * NULL: it is none, or it cannot be unpacked (said on stderr).  What a torn pack still holds is there, and it is said.
 */
const char *sl_pack_open(const char *path);

/* Removes that folder before the program ends, for who opens one pack after the other.  Nothing of it is used any more. */
void sl_pack_close(const char *path);

#endif
