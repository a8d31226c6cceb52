/* SPDX-License-Identifier: MIT */
/* Image pyramids: a level is a device buffer. A pyramid of an odd number of tiles is refused after its first level was made. */
#include <stdexcept>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

namespace {
void *device_bytes(size_t bytes)
{
	void *where = nullptr;
	if (cudaMalloc(&where, bytes))
		throw std::bad_alloc();
	return where;
}

class Pyramid {
	std::vector<void *> levels;

public:
	Pyramid(int width, int height)
	{
		for (int level = 0; width > 32; level++, width /= 2, height /= 2) {
			levels.push_back(device_bytes(3ull * width * height)); /* CULPRIT */
			if (level == 1 && width % 96 == 0)
				throw std::invalid_argument("tiles"); /* the destructor of a half-made object does not run */
		}
	}
	~Pyramid()
	{
		for (void *level : levels)
			cudaFree(level);
	}
	int score() const { return (int)levels.size(); }
};
}

extern "C" int pyramid_score(int width, int height)
{
	try {
		return Pyramid(width, height).score();
	} catch (const std::exception &) {
		return -1;
	}
}
