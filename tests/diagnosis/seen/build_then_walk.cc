// SPDX-License-Identifier: MIT
// A tree of bricks is built for more than half of the run and walked through for the rest; all goes with its owner.
#include <memory>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

struct Brick {
	void *voxels = nullptr;

	explicit Brick(size_t bytes) { OK(cudaMalloc(&voxels, bytes)); }
	~Brick() { cudaFree(voxels); }
};

struct Node {
	std::unique_ptr<Brick> brick;
	std::vector<Node> children;
};

static Node build(int depth)
{
	Node node{std::make_unique<Brick>(40000), {}};
	Brick scratch(9000);

	for (int child = 0; depth && child < 4; child++)
		node.children.push_back(build(depth - 1));
	return node;
}

static void walk(const Node &node)
{
	Brick ray(2000);

	for (auto &child : node.children)
		walk(child);
}

int main()
{
	Node root = build(4);

	walk(root);
	return 0;
}
