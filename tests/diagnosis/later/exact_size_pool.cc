// SPDX-License-Identifier: MIT
// A pool of freed blocks by their exact size. Sizes follow the number of detections, so hardly a block is used twice.
#include <map>
#include <memory>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

namespace mem {
template <class Error> void check(Error error)
{
	if (error != Error{}) {
		fprintf(stderr, "cuda error %d\n", static_cast<int>(error));
		std::exit(1);
	}
}

class Pool {
	std::map<std::size_t, std::vector<void *>> idle;

public:
	void *take(std::size_t bytes)
	{
		auto found = idle.find(bytes);
		if (found != idle.end() && !found->second.empty()) {
			void *block = found->second.back();
			found->second.pop_back();
			return block;
		}
		void *block = nullptr;
		check(cudaMalloc(&block, bytes)); // CULPRIT
		return block;
	}
	void give(std::size_t bytes, void *block) { idle[bytes].push_back(block); } // CULPRIT
	~Pool()
	{
		for (auto &[bytes, blocks] : idle)
			for (void *block : blocks)
				check(cudaFree(block));
	}
};

template <class T> class Lease {
	Pool &pool;
	std::size_t bytes;
	void *block;

public:
	Lease(Pool &from, std::size_t count) : pool(from), bytes(count * sizeof(T)), block(from.take(bytes)) {}
	~Lease() { pool.give(bytes, block); }
};
} // namespace mem

struct Box {
	float corner[4];
	float score[96];
};

static void detect(mem::Pool &pool, unsigned frame)
{
	mem::Lease<unsigned char> image(pool, 1920 * 1080 * 3);
	mem::Lease<Box> boxes(pool, 1200 + (frame * 40503u >> 3) % 700); // CULPRIT
	mem::Lease<int> order(pool, 4096);
}

int main()
{
	mem::Pool pool;
	for (unsigned frame = 0; frame < 300; frame++)
		detect(pool, frame);
	return 0;
}
