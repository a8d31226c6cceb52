/* SPDX-License-Identifier: MIT */
/*
 * Opens libraries, programs and debug files that a trace names: regular ELF files that have the recorded build id, by path, in the
 * folder of --symbols, and as .build-id/xx/rest.debug below it.  Any thread may ask.
 */
#pragma once

struct stat;

/* symbols: the folder of --symbols, or NULL.  To be called before other threads start. */
void sl_library_search(const char *symbols);

/* From now on nothing is opened (ENOTSUP): only the names of functions inside the traces are known. */
void sl_library_refuse(void);

/*
 * A descriptor, or -1 with errno: EINVAL not a regular file, EFBIG too large, ENOEXEC not ELF, ESTALE another build.
 * build_id: in hexadecimal; "": the file must have none.
 */
int sl_library_open(const char *path, const char *build_id, struct stat *st);

/*
 * The first reason in this process why a library could not be read that another time could be: EMFILE or ENFILE no descriptor,
 * ENOMEM no memory, EIO the disk fails.  0: no such failure.
 */
int sl_library_lacked(void);
unsigned sl_library_lacks(void); /* how often */
void sl_library_lack(int why);	 /* notes such a reason; any other errno is none */
