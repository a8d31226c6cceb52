/* SPDX-License-Identifier: MIT */
/* Map tiles in a cache that is bounded by bytes; it fills for a third of the run, then evicts the oldest. */
#include <list>
#include <map>

extern "C" {
#include "../../apps/gpu.h"
}

class TileCache {
	struct Tile {
		int key;
		void *data;
		size_t bytes;
	};
	std::list<Tile> tiles;
	std::map<int, std::list<Tile>::iterator> by_key;
	size_t held = 0;

	static void *load(size_t bytes)
	{
		void *p;
		OK(cudaMalloc(&p, bytes));
		return p;
	}

public:
	void *get(int key)
	{
		auto found = by_key.find(key);
		if (found != by_key.end()) {
			tiles.splice(tiles.begin(), tiles, found->second);
			return found->second->data;
		}
		size_t bytes = 100000 + key % 17 * 9000;
		tiles.push_front({key, load(bytes), bytes});
		by_key[key] = tiles.begin();
		for (held += bytes; held > 24 * MB; tiles.pop_back()) {
			held -= tiles.back().bytes;
			OK(cudaFree(tiles.back().data));
			by_key.erase(tiles.back().key);
		}
		return tiles.front().data;
	}
};

int main()
{
	TileCache cache;
	int x = 0;
	srand(6);
	for (int frame = 0; frame < 700; frame++) {
		x += rand() % 3 - 1 + frame % 2;
		for (int at = 0; at < 3; at++)
			CHECK(cache.get(x + at));
	}
	return 0;
}
