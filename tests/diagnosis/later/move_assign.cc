// SPDX-License-Identifier: MIT
// A buffer class whose move assignment forgets what it held. The solver moves a new residual in at each iteration.
#include <utility>

extern "C" {
#include "../../apps/gpu.h"
}

template <typename T> class Buffer {
	T *data_ = nullptr;
	size_t size_ = 0;

public:
	Buffer() = default;
	explicit Buffer(size_t size) : size_(size) { OK(cudaMalloc(reinterpret_cast<void **>(&data_), size * sizeof(T))); }
	Buffer(const Buffer &) = delete;
	Buffer(Buffer &&other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
	Buffer &operator=(Buffer &&other) noexcept
	{
		data_ = std::exchange(other.data_, nullptr);
		size_ = other.size_;
		return *this;
	}
	~Buffer()
	{
		if (data_)
			cudaFree(data_);
	}
	size_t size() const { return size_; }
};

struct Grid {
	size_t nx, ny;
	size_t cells() const { return nx * ny; }
};

class Solver {
	Grid grid;
	Buffer<double> pressure, residual;

	Buffer<double> laplace() const
	{
		Buffer<double> halo(2 * (grid.nx + grid.ny));
		return Buffer<double>(grid.cells()); // CULPRIT
	}

public:
	explicit Solver(Grid g) : grid(g), pressure(g.cells()) {}
	void iterate()
	{
		Buffer<float> coarse(grid.cells() / 4);
		residual = laplace(); // CULPRIT
	}
};

int main()
{
	Solver solver({256, 200});
	for (int i = 0; i < 200; i++)
		solver.iterate();
	return 0;
}
