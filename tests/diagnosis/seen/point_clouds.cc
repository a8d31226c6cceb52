/* SPDX-License-Identifier: MIT */
/* Clouds of points that double as they fill. `reserve` keeps the old storage for an undo that was never written. */
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

template <typename T> class device_vector {
	void *data = nullptr;
	size_t used = 0, room = 0;

	static void *allocate(size_t count)
	{
		void *p = nullptr;
		OK(cudaMalloc(&p, count * sizeof(T)));
		return p;
	}

public:
	static std::vector<void *> undo;
	~device_vector()
	{
		if (data)
			OK(cudaFree(data));
	}
	void reserve(size_t count)
	{
		void *bigger = allocate(count); /* CULPRIT: asked here */
		if (data)
			undo.push_back(data); /* CULPRIT: kept here */
		data = bigger;
		room = count;
	}
	void push_back(size_t count)
	{
		while (used + count > room)
			reserve(room ? 2 * room : 4096);
		used += count;
	}
};
template <typename T> std::vector<void *> device_vector<T>::undo;

static void scan(int seed)
{
	device_vector<float> cloud;
	for (int line = 0; line < 30 + seed % 20; line++)
		cloud.push_back(1000 + 37 * (seed % 11));
}

int main()
{
	device_vector<float> map;
	map.push_back(4 * MB);
	for (int i = 0; i < 45; i++)
		scan(i);
	return 0;
}
