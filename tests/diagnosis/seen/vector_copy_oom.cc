// SPDX-License-Identifier: MIT
// A list of points on the device grows by half of its size. While it is copied, both are there.
#include <cstdio>
#include <cstdlib>

extern "C" {
#include "../../apps/gpu.h"
}
#include <unistd.h>

static void *device_new(size_t bytes)
{
	void *p;

	if (cudaMalloc(&p, bytes)) {
		fprintf(stderr, "no memory for %zu bytes\n", bytes);
		exit(7);
	}
	return p;
}

struct Points {
	void *data = nullptr;
	size_t count = 0, capacity = 0;

	void grow(size_t to)
	{
		void *larger = device_new(to * 16); /* CULPRIT */

		if (data)
			OK(cudaFree(data));
		data = larger;
		capacity = to;
	}
	void add(size_t more)
	{
		if (count + more > capacity)
			grow(capacity + capacity / 2 + more); /* CULPRIT */
		count += more;
	}
};

int main()
{
	Points points;

	for (int scan = 0; scan < 900; scan++) {
		void *scratch = device_new(2000000);

		points.add(150000);
		OK(cudaFree(scratch));
		usleep(300);
	}
	return 0;
}
