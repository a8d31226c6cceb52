/* SPDX-License-Identifier: MIT */
/* What kind of program this is, where that changes what can be known about it. */
#pragma once

#include <stdbool.h>

/* True: the program ends by the system call exit_group itself, past the C library, as Go programs do. */
bool sl_runtime_leaves_by_call(void);
