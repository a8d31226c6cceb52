/* SPDX-License-Identifier: MIT */
#pragma once

#include "analyzer/outputs/output.h"

#define SL_TERMINAL_COLUMNS_MAX 400

/*
 * The style for stdout: its width (COLUMNS, else the terminal's, else 80); no colour with NO_COLOR, on a dumb terminal or in a
 * pipe.
 */
struct sl_screen_style sl_terminal_style(void);
