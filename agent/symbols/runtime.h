/* SPDX-License-Identifier: MIT */
/* What kind of program this is, where that changes what can be known of it. */
#ifndef AGENT_SYMBOLS_RUNTIME_H
#define AGENT_SYMBOLS_RUNTIME_H

#include <stdbool.h>

/* The program ends by the system call exit_group itself, past the C library: Go's. */
bool sl_runtime_leaves_by_call(void);

#endif
