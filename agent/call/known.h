/* SPDX-License-Identifier: MIT */
/*
 * Calls that change nothing where the same call was made before.  cuBLAS asks for a kernel's function at most matrix products, and
 * frameworks set the device that is set.  Only the first such call is an event (ONCE in hooks/verbs.h).
 *
 * Any thread, a signal handler too.  It takes no lock and asks no driver.  The table may forget, which costs one more event.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Code is unloaded, a context ends or a recording begins: handles may be used again, so everything is forgotten. */
void sl_known_forget(void);

/* The name by which a module or library is asked for code; 0: there is none, and the call is never known. */
uint64_t sl_known_name(uint64_t object, const char *name);

/* Code was asked for by `what`, a handle or a name from above. */
bool sl_known_code(uint64_t what);

/*
 * The answer was `handle`; `asked`: what sl_known_code said.  True: the answer was the same before.  A library's kernel has a
 * function in each context, so a known kernel with another function is another load.  Not kept for a thread that does not record.
 */
bool sl_known_answer(uint64_t what, uint64_t handle, bool asked);

/* The thread set this device last, and no context has ended since.  `set`: it has just done so. */
bool sl_known_device(int device, bool set);
