/* SPDX-License-Identifier: MIT */
/* Frames are decoded into stream-ordered memory. A frame that is damaged is given up, and what was asked for it is not given back. */
#include "../../apps/gpu.h"

#define TRY(call)                                                                                                                  \
	do {                                                                                                                       \
		if ((call))                                                                                                        \
			return -1;                                                                                                 \
	} while (0)

static int get(void **p, size_t bytes, void *stream)
{
	return cudaMallocAsync(p, bytes, stream);
}

static int is_damaged(int frame)
{
	return frame % 11 == 5;
}

static int decode(int frame, void *stream)
{
	void *planes, *motion;

	TRY(get(&planes, 6220800, stream)); /* CULPRIT */
	TRY(is_damaged(frame));
	TRY(get(&motion, 518400, stream));
	cudaFreeAsync(motion, stream);
	cudaFreeAsync(planes, stream);
	return 0;
}

int main(void)
{
	int damaged = 0;
	void *stream;
	void *reference[4];

	cudaStreamCreate(&stream);
	for (int i = 0; i < 4; i++)
		get(&reference[i], 12441600, stream);
	for (int frame = 0; frame < 900; frame++)
		damaged += decode(frame, stream) != 0;
	for (int i = 0; i < 4; i++)
		cudaFreeAsync(reference[i], stream);
	cudaStreamSynchronize(stream);
	printf("%d frames given up\n", damaged);
	return 0;
}
