// SPDX-License-Identifier: MIT
// Builds a tree of nodes on the device, walks it once, and gives all of it back.
#include <memory>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

struct Node {
	void *p = nullptr;
	std::vector<std::unique_ptr<Node>> children;
	explicit Node(int depth)
	{
		OK(cudaMalloc(&p, 20000));
		for (int i = 0; depth > 0 && i < 3; i++)
			children.push_back(std::make_unique<Node>(depth - 1));
	}
	~Node() { cudaFree(p); }
};

int main()
{
	Node root(5);
	OK(cudaDeviceSynchronize());
	return 0;
}
