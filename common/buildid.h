/* SPDX-License-Identifier: MIT */
/* The build id of an ELF file.  The linker puts it there; no two builds share one. */
#pragma once

#include <stdbool.h>

#define SL_BUILDID_MAX	64 /* bytes */
#define SL_BUILDID_TEXT (2 * SL_BUILDID_MAX + 1)

/* Writes it in hexadecimal, "" where the file has none.  The file may be hostile.  False: not a 64-bit ELF file.  Any thread. */
bool sl_buildid_read(int fd, char *text);
