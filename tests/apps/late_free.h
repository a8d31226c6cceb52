/* SPDX-License-Identifier: MIT */
/* The library of late_free.c: makes its blocks now, and frees them when it is unloaded, on a thread of `stack` bytes. */
#pragma once

#include <stddef.h>

void late_free(size_t stack);
