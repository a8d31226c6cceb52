/* SPDX-License-Identifier: MIT */
/* Runtimes of sanitizers (ASan, TSan, MSan, LSan) in the program, which take the C library's place in much that it does. */
#ifndef AGENT_SYMBOLS_SANITIZERS_H
#define AGENT_SYMBOLS_SANITIZERS_H

#include <stdbool.h>

/*
 * One is there: then we open no library.  It judges what that does as it does the program, takes thread-local memory that came
 * later for something else, and is gone when a library's destructors of a thread run.
 */
bool sl_sanitizers_present(void);

#endif
