/* SPDX-License-Identifier: MIT */
/* The build id of an ELF file, which the linker put there and which no two builds share. */
#ifndef COMMON_BUILDID_H
#define COMMON_BUILDID_H

#include <stdbool.h>

#define SL_BUILDID_MAX	64 /* bytes */
#define SL_BUILDID_TEXT (2 * SL_BUILDID_MAX + 1)

/* In hexadecimal, "" where the file has none.  The file may be anybody's.  False: no ELF of 64 bits.  Any thread. */
bool sl_buildid_read(int fd, char *text);

#endif
