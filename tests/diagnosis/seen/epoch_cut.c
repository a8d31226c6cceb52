/* SPDX-License-Identifier: MIT */
/* An epoch's samples are kept until it ends. The program is told to stop soon after the fourth has begun. */
#include <unistd.h>

#include "../../apps/gpu.h"

static void *kept[128];

int main(void)
{
	void *scratch;
	int count = 0;
	for (int sample = 0; sample < 310; sample++) {
		OK(cudaMalloc(&kept[count++], (size_t)(1 + sample % 4) * 600000));
		OK(cudaMalloc(&scratch, 2 * MB));
		usleep(700);
		OK(cudaFree(scratch));
		while (sample % 90 == 89 && count)
			OK(cudaFree(kept[--count]));
	}
	return 0;
}
