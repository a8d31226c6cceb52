/* SPDX-License-Identifier: MIT */
/* Runtimes of sanitizers (ASan, TSan, MSan, LSan) in the program, which take the C library's place in much that it does. */
#pragma once

#include <stdbool.h>

/*
 * True: a sanitizer's runtime is there, or valgrind.  Then we open no library, because the runtime judges what the library does
 * as if the program did it, misjudges thread-local memory that came later, and is gone when a library's destructors of a
 * thread run.
 */
bool sl_sanitizers_present(void);

/*
 * True: ThreadSanitizer's.  It counts threads: a child of a process with more than one can make none, and an exit waits a second.
 */
bool sl_sanitizers_of_threads(void);
