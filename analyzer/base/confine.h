/* SPDX-License-Identifier: MIT */
/*
 * Before a trace is read the analyzer gives up what it does not need (Linux's Landlock, ABI 1 and later): it may write below
 * the parents of its outputs and in TMPDIR alone, execute nothing, and from ABI 4 on neither listen nor connect by TCP.  So
 * what a hostile file might make it do stays there.  Reading is not confined: libraries that traces name lie anywhere.
 */
#ifndef ANALYZER_BASE_CONFINE_H
#define ANALYZER_BASE_CONFINE_H

#include <stdbool.h>

/*
 * writes: files and folders that will be made or replaced, NULL ends them.  For good, for this thread and those that it
 * starts.  false: this kernel cannot, and nothing was given up.
 */
bool sl_confine(const char *const *writes);

#endif
