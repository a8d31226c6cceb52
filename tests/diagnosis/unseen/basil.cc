// SPDX-License-Identifier: MIT
// A decoder that captures a graph per sequence length, in a cache that is cleared by forgetting.
#include <map>

extern "C" {
#include "../../apps/gpu.h"
}

struct executable {
	void *graph = nullptr, *exec = nullptr;
};

class graph_cache
{
      public:
	executable &find(int length)
	{
		auto at = entries.find(length);
		if (at == entries.end()) {
			if (entries.size() == 10)
				entries.clear();
			at = entries.emplace(length, capture(length)).first; // CULPRIT
		}
		return at->second;
	}

      private:
	static executable capture(int length)
	{
		executable made;
		alloc_node node = {};
		void *first, *last;
		node.pool.alloc_type = 1;
		node.pool.location = {1, 0};
		node.bytes = static_cast<size_t>(length) << 16;
		OK(cuGraphCreate(&made.graph, 0));
		OK(cuGraphAddMemAllocNode(&first, made.graph, nullptr, 0, &node));
		OK(cuGraphAddMemFreeNode(&last, made.graph, &first, 1, node.ptr));
		OK(cuGraphInstantiateWithFlags(&made.exec, made.graph, 0)); // CULPRIT
		return made;
	}
	std::map<int, executable> entries;
};

int main()
{
	void *context, *stream;
	graph_cache cache;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 1));
	for (int token = 0; token < 600; token++)
		OK(cuGraphLaunch(cache.find(1 + token * 7 % 120).exec, stream));
}
