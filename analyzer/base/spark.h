/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Draws numbers as characters of eight heights, the highest for the largest, the lowest for 0 alone.  ascii: one byte each, else up
 * to three.
 */
void sl_spark(char *out, size_t size, const uint64_t *numbers, unsigned count, bool ascii);
