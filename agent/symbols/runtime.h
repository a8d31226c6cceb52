/* SPDX-License-Identifier: MIT */
/* Recognizes programs whose runtime does not end by the C library (Go): their end is not seen. */
#pragma once

#include <stdbool.h>

/* True: the program ends by the system call exit_group itself, past the C library, as Go programs do. */
bool sl_runtime_leaves_by_call(void);
