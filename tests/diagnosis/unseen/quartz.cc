// SPDX-License-Identifier: MIT
// Molecules in a box. A frame of the trajectory is kept on the device every twentieth step; it was to be written to disk.
#include <memory>
#include <stdexcept>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

template <typename T> class device_array
{
      public:
	explicit device_array(size_t n) : n_(n), p_(allocate(n * sizeof(T)), cudaFree)
	{
	}
	size_t size() const
	{
		return n_;
	}

      private:
	static T *allocate(size_t bytes)
	{
		void *p = nullptr;
		if (cudaMalloc(&p, bytes))
			throw std::runtime_error("cudaMalloc");
		return static_cast<T *>(p);
	}
	size_t n_;
	std::unique_ptr<T, int (*)(void *)> p_;
};

class simulation
{
      public:
	explicit simulation(size_t atoms) : positions(3 * atoms), velocities(3 * atoms)
	{
	}
	void run(int steps)
	{
		for (int i = 0; i < steps; i++)
			step(i);
	}

      private:
	void step(int i)
	{
		device_array<float> forces(positions.size());
		device_array<int> neighbours(positions.size() * 4 + i % 50);
		if (i % 20 == 0)
			frames.emplace_back(positions.size()); // CULPRIT
	}
	device_array<double> positions, velocities;
	std::vector<device_array<float>> frames;
};

int main()
{
	simulation box(40000);
	box.run(700);
}
