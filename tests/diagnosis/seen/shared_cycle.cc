// SPDX-License-Identifier: MIT
// Nodes of a pipeline know who comes before and who comes after them, both by shared_ptr: no node of a graph that was run is ever destroyed.
#include <memory>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

namespace memory
{
static void *host(size_t bytes)
{
	void *p = nullptr;

	return cudaHostAlloc(&p, bytes, 0) ? nullptr : p;
}
struct Pinned {
	void *data;
	explicit Pinned(size_t bytes) : data(host(bytes)) {}
	~Pinned() { cudaFreeHost(data); }
};
} // namespace memory

struct Node {
	std::unique_ptr<memory::Pinned> output;
	std::shared_ptr<Node> before, after;
};

static std::shared_ptr<Node> add(const std::shared_ptr<Node> &before, size_t bytes)
{
	auto node = std::make_shared<Node>();

	node->output = std::make_unique<memory::Pinned>(bytes); /* CULPRIT */
	node->before = before; /* CULPRIT */
	if (before)
		before->after = node;
	return node;
}

static void run(size_t bytes)
{
	memory::Pinned staging(262144);
	std::shared_ptr<Node> last;

	for (int stage = 0; stage < 4; stage++)
		last = add(last, bytes);
}

int main()
{
	memory::Pinned ring(1 << 20);

	for (int graph = 0; graph < 160; graph++) {
		run(98304);
		memory::Pinned result(131072);
	}
	return 0;
}
