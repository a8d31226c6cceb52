/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/* True: a terminal on which a line can be overwritten: TERM is not "dumb". */
bool sl_terminal_rewrites(int fd);
