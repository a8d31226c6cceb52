// SPDX-License-Identifier: MIT
// Beam search. The beams that lose are dropped from the list, but their caches were shared in a cycle.
#include <algorithm>
#include <memory>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

static void *checked_malloc(size_t bytes)
{
	void *p = nullptr;
	if (int rc = cudaMalloc(&p, bytes)) {
		fprintf(stderr, "checked_malloc(%zu): %d\n", bytes, rc);
		exit(1);
	}
	return p;
}

struct kv_cache {
	explicit kv_cache(size_t tokens) : data(checked_malloc(tokens * 1024))
	{
	}
	~kv_cache()
	{
		cudaFree(data);
	}
	void *data;
	std::shared_ptr<kv_cache> prefix, owner;
};

struct beam {
	std::shared_ptr<kv_cache> cache;
	int score = 0;
};

static beam extend(const beam &from, int score)
{
	beam longer{std::make_shared<kv_cache>(96), from.score + score}; // CULPRIT
	longer.cache->prefix = from.cache;
	longer.cache->owner = longer.cache;
	return longer;
}

static void decode(std::vector<beam> &beams)
{
	std::vector<beam> next;
	for (const beam &each : beams)
		for (int i = 0; i < 3; i++)
			next.push_back(extend(each, rand() % 10)); // CULPRIT
	std::sort(next.begin(), next.end(), [](const beam &a, const beam &b) { return a.score > b.score; });
	next.resize(4);
	beams = next;
}

int main()
{
	void *weights = checked_malloc(512 << 20);
	for (int sentence = 0; sentence < 20; sentence++) {
		std::vector<beam> beams(1);
		for (int token = 0; token < 12; token++)
			decode(beams);
		void *logits = checked_malloc(32000 * 16);
		cudaFree(logits);
	}
	cudaFree(weights);
}
