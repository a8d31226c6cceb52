/* SPDX-License-Identifier: MIT */
/* A search keeps the state of every node it has opened, closed ones too, until the device is full. */
#include <memory>
#include <new>
#include <queue>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

class DeviceBuffer {
	void *p = nullptr;

public:
	explicit DeviceBuffer(size_t bytes)
	{
		if (cudaMalloc(&p, bytes))
			throw std::bad_alloc();
	}
	DeviceBuffer(const DeviceBuffer &) = delete;
	~DeviceBuffer() { cudaFree(p); }
};

struct Node {
	std::shared_ptr<Node> parent;
	DeviceBuffer state;
	int score;
	Node(std::shared_ptr<Node> from, int score) : parent(std::move(from)), state((18 + score % 9) * MB), score(score) {}
};

struct Search {
	std::vector<std::shared_ptr<Node>> closed;
	std::queue<std::shared_ptr<Node>> open;

	std::shared_ptr<Node> child(const std::shared_ptr<Node> &of, int which)
	{
		return std::make_shared<Node>(of, (of->score * 31 + which * 7) % 100); // CULPRIT: asked here
	}
	void expand()
	{
		DeviceBuffer logits(5 * MB);
		auto node = open.front();
		open.pop();
		closed.push_back(node); // CULPRIT: kept here
		open.push(child(node, 1));
		if (open.size() < 8)
			open.push(child(node, 2));
	}
};

int main()
{
	try {
		Search search;
		search.open.push(std::make_shared<Node>(nullptr, 5));
		for (int i = 0; i < 2000; i++)
			search.expand();
	} catch (const std::bad_alloc &) {
		fprintf(stderr, "search: out of device memory\n");
		return 3;
	}
	return 0;
}
