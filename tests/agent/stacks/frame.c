/* SPDX-License-Identifier: MIT */
/* Built twice with frames of different sizes; the call returns to the same offset in both. */
#include <stdint.h>

uint64_t with_frame(uint64_t (*call)(unsigned), unsigned argument);

uint64_t with_frame(uint64_t (*call)(unsigned), unsigned argument)
{
	volatile char room[BYTES];

	room[0] = room[BYTES - 1] = 1;
	return call(argument) + room[0] - 1;
}
