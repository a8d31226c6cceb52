// SPDX-License-Identifier: MIT
// Takes one large slab at the start and hands out parts of it by a bump pointer; the driver is not asked again.
#include <new>

extern "C" {
#include "../../apps/gpu.h"
}

class slab
{
      public:
	explicit slab(size_t bytes) : size(bytes)
	{
		void *p = nullptr;
		if (cudaMalloc(&p, bytes))
			throw std::bad_alloc();
		base = static_cast<char *>(p);
	}
	~slab()
	{
		cudaFree(base);
	}
	void *part(size_t bytes)
	{
		if (at + bytes > size)
			at = 0;
		at += bytes;
		return base + at - bytes;
	}

      private:
	char *base = nullptr;
	size_t size, at = 0;
};

int main()
{
	slab frames(3ull << 30), lists(512 << 20);
	for (int i = 0; i < 5000; i++) {
		frames.part(7 << 20);
		lists.part(4096);
	}
	void *result = nullptr;
	for (int i = 0; i < 10; i++) {
		OK(cudaMalloc(&result, 1 << 20));
		OK(cudaFree(result));
	}
}
