// SPDX-License-Identifier: MIT
// A cache that forgets what was used least recently. It is full after two thirds of the run.
#include <list>
#include <unordered_map>

extern "C" {
#include "../../apps/gpu.h"
}

class Lru {
	struct Item {
		int key;
		void *p;
	};
	std::list<Item> order;
	std::unordered_map<int, std::list<Item>::iterator> at;
	size_t most;

	static void *device_alloc(size_t n)
	{
		void *p;
		OK(cudaMalloc(&p, n));
		return p;
	}

public:
	explicit Lru(size_t n) : most(n) {}
	void *get(int key)
	{
		auto found = at.find(key);
		if (found != at.end()) {
			order.splice(order.begin(), order, found->second);
			return found->second->p;
		}
		if (order.size() == most) {
			OK(cudaFree(order.back().p));
			at.erase(order.back().key);
			order.pop_back();
		}
		order.push_front({key, device_alloc(150000)});
		at[key] = order.begin();
		return order.front().p;
	}
	~Lru()
	{
		for (auto &item : order)
			cudaFree(item.p);
	}
};

int main()
{
	Lru cache(160);
	unsigned seed = 1;
	for (int request = 0; request < 700; request++) {
		seed = seed * 1664525u + 1013904223u;
		cache.get((int)(seed >> 16) % 400);
		void *out;
		OK(cudaMalloc(&out, 4000));
		OK(cudaFree(out));
	}
	return 0;
}
