// SPDX-License-Identifier: MIT
// Two regions are surveyed one after the other: each survey holds its strips until it has made a map of them.
#include <list>
#include <memory>
#include <unistd.h>

extern "C" {
#include "../../apps/gpu.h"
}

struct Strip {
	void *points = nullptr;
	size_t bytes;

	explicit Strip(size_t size) : bytes(size) { OK(cudaMalloc(&points, bytes)); }
	~Strip() { cudaFree(points); }
};

struct Survey {
	std::list<std::unique_ptr<Strip>> strips;

	void fly(int count, size_t bytes)
	{
		for (int i = 0; i < count; i++) {
			strips.push_back(std::make_unique<Strip>(bytes));
			Strip lens(96 << 10);
			usleep(2000);
		}
	}
	size_t map() const
	{
		size_t area = 0;

		for (auto &strip : strips)
			area += strip->bytes;
		return area;
	}
};

static size_t survey(int strips)
{
	Survey survey;

	survey.fly(strips, 640 << 10);
	return survey.map();
}

int main()
{
	size_t coast = survey(130);
	size_t hills = survey(130);

	return coast == hills ? 0 : 1;
}
