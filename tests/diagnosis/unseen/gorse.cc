// SPDX-License-Identifier: MIT
// A second solver is needed from iteration 150 of 250 on; it takes its five work vectors once.
#include <array>
#include <optional>

extern "C" {
#include "../../apps/gpu.h"
}

struct vector {
	explicit vector(size_t n)
	{
		OK(cudaMalloc(&data, n * sizeof(double)));
	}
	vector(const vector &) = delete;
	~vector()
	{
		OK(cudaFree(data));
	}
	void *data = nullptr;
};

struct gmres {
	explicit gmres(size_t n) : r(n), w(n), v(n), y(n), z(n)
	{
	}
	vector r, w, v, y, z;
};

int main()
{
	const size_t n = 1500000;
	vector x(n), b(n);
	std::optional<gmres> second;
	for (int i = 0; i < 250; i++) {
		vector residual(n);
		if (i == 150)
			second.emplace(n);
	}
}
