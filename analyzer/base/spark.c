/* SPDX-License-Identifier: MIT */
#include "analyzer/base/spark.h"

#include <stdio.h>

void sl_spark(char *out, size_t size, const uint64_t *numbers, unsigned count, bool ascii)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const plain[] = {".", ":", "-", "=", "+", "*", "%", "#"};
	const char *const *marks = ascii ? plain : blocks;
	uint64_t top = 1;
	size_t at = 0;

	out[0] = 0;
	for (unsigned i = 0; i < count; i++)
		top = numbers[i] > top ? numbers[i] : top;
	for (unsigned i = 0; i < count && at + 4 <= size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s",
				       marks[numbers[i] ? 1 + (unsigned)((double)numbers[i] / (double)top * 6.999) % 7 : 0]);
}
