/* SPDX-License-Identifier: MIT */
#ifndef ANALYZER_BASE_TERMINAL_H
#define ANALYZER_BASE_TERMINAL_H

#include <stdbool.h>

/* A terminal on which a line can be written over: none that calls itself dumb. */
bool sl_terminal_rewrites(int fd);

#endif
