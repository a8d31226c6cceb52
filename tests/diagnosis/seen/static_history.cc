/* SPDX-License-Identifier: MIT */
/* A debugger keeps unique_ptrs of what every step made, in a static vector behind a function. */
extern "C" {
#include "../../apps/gpu.h"
}
#include <memory>
#include <vector>

namespace dev {
struct Deleter {
	void operator()(void *p) const { cudaFree(p); }
};
using Ptr = std::unique_ptr<void, Deleter>;

inline Ptr make(size_t bytes)
{
	void *p = nullptr;
	OK(cudaMalloc(&p, bytes));
	return Ptr(p);
}
}

static std::vector<dev::Ptr> &history()
{
	static std::vector<dev::Ptr> all;
	return all;
}

struct Solver {
	dev::Ptr u = dev::make(8 * MB), v = dev::make(8 * MB);
	bool debug = true;

	dev::Ptr residual() { return dev::make(1100000); }
	void step()
	{
		dev::Ptr tmp = dev::make(2 * MB);
		dev::Ptr r = residual(); /* CULPRIT: asked here */
		if (debug)
			history().push_back(std::move(r)); /* CULPRIT: kept here */
	}
};

int main()
{
	Solver solver;
	for (int i = 0; i < 25; i++)
		solver.step();
	return 0;
}
