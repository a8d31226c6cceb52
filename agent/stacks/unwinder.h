/* SPDX-License-Identifier: MIT */
/*
 * Unwinds a native stack where our own walk cannot.  It uses libunwind, which is never linked (it would take over the program's C++
 * exceptions): the writer thread opens it with RTLD_LOCAL.  The program's libgcc_s is not asked: where code has no tables it reads
 * that code, which may be no address, and a program may close it.
 */
#pragma once

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "common/text.h"

/* Writer thread only: opens libunwind. */
void sl_unwinder_load(void);
