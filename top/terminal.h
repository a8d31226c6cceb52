/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/* The terminal that TERM names is known and can place text; before curses starts. */
bool sl_top_terminal_fits(void);
