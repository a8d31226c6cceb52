/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/* The terminal that TERM names is known and can place text; before curses starts. */
bool sl_top_terminal_fits(void);

/*
 * Begins curses, with no more lines or columns than it can have.  The first INT, TERM or HUP then acts as key q; a second one ends
 * the program at once.  False: it cannot.
 */
bool sl_top_terminal_begin(void);

/* Waits until a key is there, the terminal has another size, or so long.  False: such a signal came, or the terminal is gone. */
bool sl_top_terminal_wait(int milliseconds);
