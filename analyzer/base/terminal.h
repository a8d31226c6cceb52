/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/* A terminal on which a line can be written over: none that calls itself dumb. */
bool sl_terminal_rewrites(int fd);
