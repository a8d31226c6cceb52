/* SPDX-License-Identifier: MIT */
/* Prices orders with stream-ordered memory. An order that is cancelled while it is priced returns early, without its paths. */
#include <memory>
#include <random>

extern "C" {
#include "../../apps/gpu.h"
}

template <class T> static T *make_on_device(size_t count, void *stream)
{
	void *p;
	OK(cudaMallocAsync(&p, count * sizeof(T), stream));
	return static_cast<T *>(p);
}

struct Order {
	int id, steps;
	bool cancelled;
};

class Pricer {
	void *stream;

public:
	Pricer() { OK(cudaStreamCreate(&stream)); }
	double price(const Order &order)
	{
		double *normals = make_on_device<double>(order.steps * 512, stream);
		float *paths = make_on_device<float>(order.steps * 4096, stream); // CULPRIT: asked here
		OK(cudaFreeAsync(normals, stream));
		if (order.cancelled)
			return -1; // CULPRIT: lost here
		OK(cudaFreeAsync(paths, stream));
		return order.steps;
	}
	~Pricer() { OK(cudaStreamDestroy(stream)); }
};

int main()
{
	std::mt19937 random(17);
	Pricer pricer;
	double sum = 0;
	for (int id = 0; id < 500; id++)
		sum += pricer.price({id, 50 + (int)(random() % 200), random() % 11 == 0});
	return sum < 0;
}
