// SPDX-License-Identifier: MIT
// Attention without tiling: the scores of one document of a hundred times the usual length do not fit.
#include <array>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

template <typename T> class Array {
	void *p = nullptr;

public:
	explicit Array(size_t count)
	{
		if (cudaMalloc(&p, count * sizeof(T)))
			throw static_cast<int>(count);
	}
	Array(const Array &) = delete;
	~Array() { cudaFree(p); }
};

template <typename T, int Heads> struct Attention {
	Array<T> projections{512 * 1024};

	void operator()(size_t length) const
	{
		Array<T> keys(length * 64 * Heads);
		Array<T> scores(length * length * Heads); /* CULPRIT */
	}
};

template <typename Layer, size_t N> static void encode(const std::array<Layer, N> &layers, size_t length)
{
	for (auto &layer : layers)
		layer(length);
}

int main()
{
	std::array<Attention<float, 8>, 4> layers;
	unsigned seed = 7;

	try {
		for (int document = 0; document < 200; document++) {
			seed = seed * 1103515245u + 12345u;
			encode(layers, document == 170 ? 30000 : 100 + seed / 65536 % 200);
		}
	} catch (int) {
		return 3;
	}
	return 0;
}
