// SPDX-License-Identifier: MIT
// Particles split as they near the wall, and none is ever removed: the chunks that hold them fill the device.
#include <list>
#include <stdexcept>

extern "C" {
#include "../../apps/gpu.h"
}

struct OutOfMemory : std::runtime_error {
	using runtime_error::runtime_error;
};

template <typename T> struct Chunk {
	T *items = nullptr;
	explicit Chunk(size_t count)
	{
		void *p;
		if (cudaMalloc(&p, count * sizeof(T)))
			throw OutOfMemory("no memory for a chunk");
		items = static_cast<T *>(p);
	}
	Chunk(const Chunk &) = delete;
	~Chunk() { cudaFree(items); }
};

struct Particle {
	float position[3], velocity[3], mass, charge;
};

class Cloud {
	std::list<Chunk<Particle>> chunks;
	size_t used = 0, room = 0;
	static constexpr size_t chunk = 500000;

public:
	void add(size_t count)
	{
		for (used += count; used > room; room += chunk)
			chunks.emplace_back(chunk); // CULPRIT
	}
	size_t size() const { return used; }
};

static void step(Cloud &cloud)
{
	Chunk<int> neighbours(1000000);
	Chunk<float> forces(3000000);
	cloud.add(900000); // CULPRIT
}

int main()
{
	Cloud cloud;
	try {
		for (int i = 0; i < 2000; i++)
			step(cloud);
	} catch (const OutOfMemory &error) {
		fprintf(stderr, "%s at %zu particles\n", error.what(), cloud.size());
		return 1;
	}
	return 0;
}
