/* SPDX-License-Identifier: MIT */
/* A column of strings on the device, filled by batches until the file ends: it asks for more when it must, and forgets what it had. */
#include <unistd.h>

extern "C" {
#include "../../apps/gpu.h"
}

namespace {
template <typename T> T *take(size_t count)
{
	void *p = nullptr;
	OK(cudaMalloc(&p, count * sizeof(T)));
	return static_cast<T *>(p);
}

class column {
	char *bytes = nullptr;
	size_t used = 0, room = 0;

public:
	~column()
	{
		OK(cudaFree(bytes));
	}
	void append(size_t more)
	{
		used += more;
		if (used <= room)
			return;
		room = used + used / 7;
		bytes = take<char>(room); /* CULPRIT */
	}
};
} // namespace

int main()
{
	column names;
	unsigned seed = 11;
	size_t text = 1700;

	for (int batch = 0; batch < 360; batch++) {
		char *staged = take<char>(3 * MB);
		seed = seed * 1103515245 + 12345;
		names.append(batch < 310 ? text + seed % text : 0);
		text += text / 47;
		usleep(1500);
		OK(cudaFree(staged));
	}
	return 0;
}
