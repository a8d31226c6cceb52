/* SPDX-License-Identifier: MIT */
/*
 * Libraries and programs that a trace names lie anywhere, and whoever reads the trace may read nearly nothing (base/confine.h).  So a
 * process that never sees a byte of the trace, the lender, opens them for it: a regular file within the budget that is ELF and has the
 * build id that was recorded, nothing else.  It looks at the notes of the file alone.  Any process forked since, and any thread, may ask.
 */
#ifndef ANALYZER_BASE_LENDER_H
#define ANALYZER_BASE_LENDER_H

#include <stdbool.h>

/*
 * Before other threads and before sl_confine.  symbols: a folder where files are looked for too (by their path below it, their name,
 * and as .build-id/xx/rest.debug), or NULL.  Without a lender the caller opens files itself, by the same rules.
 */
void sl_lender_start(const char *symbols);

/*
 * A descriptor, or -1 with errno: EINVAL no regular file, EFBIG over the budget, ENOEXEC no ELF, ESTALE another build.
 * build_id: in hexadecimal; "": the file must have none.
 */
struct stat;
int sl_lender_open(const char *path, const char *build_id, struct stat *st);

#endif
