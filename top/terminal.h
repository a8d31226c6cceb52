/* SPDX-License-Identifier: MIT */
#ifndef TOP_TERMINAL_H
#define TOP_TERMINAL_H

#include <stdbool.h>

/* The terminal that TERM names is known and can place text; before curses starts. */
bool top_terminal_fits(void);

#endif
