// SPDX-License-Identifier: MIT
// A tensor store on virtual memory: tensors grow in place. A deleted tensor frees its addresses; the handles it holds are copies nobody releases.
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

constexpr size_t page = 2 << 20;

class physical_page
{
      public:
	physical_page()
	{
		memory_prop prop = {};
		prop.type = 1;
		prop.location = {1, 0};
		OK(cuMemCreate(&handle, page, &prop, 0));
	}
	address handle = 0;
};

class growing_tensor
{
      public:
	explicit growing_tensor(size_t most) : most(most)
	{
		OK(cuMemAddressReserve(&base, most, 0, 0, 0));
	}
	~growing_tensor()
	{
		OK(cuMemUnmap(base, used));
		OK(cuMemAddressFree(base, most));
	}
	void extend()
	{
		access rw = {{1, 0}, 3};
		pages.push_back(physical_page()); // CULPRIT
		OK(cuMemMap(base + used, page, 0, pages.back().handle, 0));
		OK(cuMemSetAccess(base + used, page, &rw, 1));
		used += page;
	}

      private:
	address base = 0;
	size_t most, used = 0;
	std::vector<physical_page> pages;
};

int main()
{
	void *context;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	for (int i = 0; i < 80; i++) {
		growing_tensor tensor(64 * page);
		for (int n = 0; n < 2 + i % 5; n++)
			tensor.extend(); // CULPRIT
	}
}
