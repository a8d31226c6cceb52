// SPDX-License-Identifier: MIT
// An extension for Python: convolutions with a workspace that is enlarged when it is too small, and made anew when the device "may have changed".
#include <cstddef>
#include <stdexcept>

extern "C" {
int cudaMalloc(void **, std::size_t);
int cudaFree(void *);
}

namespace
{
struct workspace {
	void *data = nullptr;
	std::size_t bytes = 0;
	unsigned generation = 0;
} current;

unsigned device_generation;

void *reserve(std::size_t bytes)
{
	void *p = nullptr;
	if (cudaMalloc(&p, bytes))
		throw std::runtime_error("no memory");
	return p;
}

workspace &get_workspace(std::size_t bytes)
{
	if (current.generation != device_generation || current.bytes < bytes) {
		current.data = reserve(1835008); // CULPRIT
		current.bytes = 1835008;
		current.generation = device_generation;
	}
	return current;
}
} // namespace

extern "C" void *cedar_conv(std::size_t pixels, int changed)
{
	device_generation += static_cast<unsigned>(changed);
	get_workspace(pixels);
	return reserve(pixels * 4);
}

extern "C" void cedar_release(void *image)
{
	cudaFree(image);
}
