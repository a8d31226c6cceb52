// SPDX-License-Identifier: MIT
// A cache of keys and values in virtual memory. A closed sequence releases its handles, and leaves its pages mapped.
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

namespace kv {
constexpr size_t page = 2 * MB;

address create_page()
{
	memory_prop where = {};
	where.type = 1;
	where.location = {1, 0};
	address handle;
	OK(cuMemCreate(&handle, page, &where, 0));
	return handle;
}

class Sequence {
	address base = 0;
	size_t room;
	std::vector<address> pages;

public:
	explicit Sequence(size_t most) : room(most * page) { OK(cuMemAddressReserve(&base, room, 0, 0, 0)); }
	void extend()
	{
		address handle = create_page(); // CULPRIT
		access rw = {{1, 0}, 3};
		OK(cuMemMap(base + pages.size() * page, page, 0, handle, 0));
		OK(cuMemSetAccess(base + pages.size() * page, page, &rw, 1));
		pages.push_back(handle);
	}
	void close()
	{
		for (address handle : pages)
			OK(cuMemRelease(handle)); // CULPRIT
		pages.clear();
	}
};
} // namespace kv

static void generate(int tokens)
{
	kv::Sequence sequence(4);
	for (int token = 0; token < tokens; token++)
		if (token % 100 == 0)
			sequence.extend(); // CULPRIT
	sequence.close();
}

int main()
{
	void *context;
	address weights, logits;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc_v2(&weights, 300 * MB));
	for (int request = 0; request < 110; request++) {
		OK(cuMemAlloc_v2(&logits, 128000));
		generate(120 + request % 3 * 40);
		OK(cuMemFree_v2(logits));
	}
	OK(cuMemFree_v2(weights));
	return 0;
}
