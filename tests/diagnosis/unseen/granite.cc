// SPDX-License-Identifier: MIT
// Tenants of a service, each with a memory pool. A tenant that leaves takes its session with it, and leaves the pool behind.
#include <memory>
#include <string>
#include <unordered_map>

extern "C" {
#include "../../apps/gpu.h"
}

class pool_resource
{
      public:
	pool_resource()
	{
		pool_props props = {};
		props.alloc_type = 1;
		props.location = {1, 0};
		uint64_t all = UINT64_MAX;
		OK(cudaMemPoolCreate(&handle, &props));
		OK(cudaMemPoolSetAttribute(handle, 4, &all));
	}
	void *allocate(size_t bytes, void *stream)
	{
		void *p = nullptr;
		OK(cudaMallocFromPoolAsync(&p, bytes, handle, stream));
		return p;
	}

      private:
	void *handle = nullptr; // no destructor: somebody may still use the memory
};

class tenant
{
      public:
	explicit tenant(void *stream) : stream(stream), pool(new pool_resource) // CULPRIT
	{
	}
	void query(size_t rows)
	{
		void *p = pool->allocate(rows * 64, stream);
		OK(cudaFreeAsync(p, stream));
		OK(cudaStreamSynchronize(stream));
	}

      private:
	void *stream;
	std::shared_ptr<pool_resource> pool;
};

int main()
{
	void *stream;
	std::unordered_map<std::string, tenant> tenants;
	OK(cudaStreamCreate(&stream));
	for (int i = 0; i < 70; i++) {
		auto name = "tenant-" + std::to_string(i);
		auto entered = tenants.emplace(name, stream); // CULPRIT
		for (int q = 0; q < 5; q++)
			entered.first->second.query(200000);
		tenants.erase(name);
	}
}
