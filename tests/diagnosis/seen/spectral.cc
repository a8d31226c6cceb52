// SPDX-License-Identifier: MIT
// A library of transforms: what Python calls. A transform has a twiddle table by length, and by the number of the call that asked for it.
#include <cstddef>
#include <map>
#include <new>
#include <utility>

extern "C" {
int cudaMalloc(void **, size_t);
int cudaFree(void *);
}

namespace spectral
{
class device_memory
{
      public:
	explicit device_memory(size_t bytes)
	{
		if (cudaMalloc(&data, bytes))
			throw std::bad_alloc();
	}
	~device_memory()
	{
		cudaFree(data);
	}
	device_memory(const device_memory &) = delete;
	void *data = nullptr;
};

class planner
{
      public:
	void *twiddles(unsigned length)
	{
		auto key = std::make_pair(length, calls++);
		auto found = tables.find(key);
		if (found == tables.end())
			found = tables.emplace(key, new device_memory(std::size_t{length} * 16)).first; // CULPRIT
		return found->second->data;
	}

      private:
	unsigned calls = 0;
	std::map<std::pair<unsigned, unsigned>, device_memory *> tables;
};

planner shared;
} // namespace spectral

extern "C" int spectral_forward(unsigned length, int batch)
{
	spectral::device_memory work(static_cast<std::size_t>(length) * 8 * batch);
	return spectral::shared.twiddles(length) ? 0 : 1;
}
