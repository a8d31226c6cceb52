/* SPDX-License-Identifier: MIT */
/*
 * Workspace of a plan as an H200 took it (cuFFT 12.0): 16 bytes an element; where a length has a prime factor above 127,
 * Bluestein's algorithm pads to the next product of 2, 3, 5 and 7. A plan's own memory in the driver is not taken.
 */
#include <stdbool.h>
#include <stddef.h>

/* True: all prime factors of n are at most `limit`. */
static bool is_smooth(long long n, long long limit)
{
	for (long long p = 2; p <= limit; p++)
		while (n % p == 0)
			n /= p;
	return n == 1;
}

int cufftXtMakePlanMany(int plan, int rank, long long *n, long long *in_embed, long long in_stride, long long in_distance,
			int in_type, long long *out_embed, long long out_stride, long long out_distance, int out_type,
			long long batch, size_t *bytes, int type)
{
	long long elements = batch, padded;
	bool smooth = true;

	for (int i = 0; i < rank; i++) {
		elements *= n[i];
		smooth &= is_smooth(n[i], 127);
	}
	for (padded = 2 * elements; !smooth && !is_smooth(padded, 7);)
		padded++;
	*bytes = (size_t)(smooth ? 16 * elements : 8 * (padded + 3 * elements));
	return 0;
}
