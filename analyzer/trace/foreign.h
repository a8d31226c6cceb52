/* SPDX-License-Identifier: MIT */
/* Files that people name, and that are none of ours: what they are, by their first bytes. */
#pragma once

#include <stdbool.h>

/* Prints on stderr what each of the files is that is known, and what to do.  True: each was one, so that no more needs telling. */
bool sl_foreign_tell(char *const *paths, unsigned count);
