// SPDX-License-Identifier: MIT
// One context a thread, as an old guide says. The threads come and go with the connections; their contexts stay.
#include <functional>
#include <thread>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

class Session {
	void *context = nullptr;

public:
	Session() { OK(cuCtxCreate_v2(&context, 0, 0)); } // CULPRIT
	address allocate(size_t bytes) const
	{
		address p;
		OK(cuMemAlloc_v2(&p, bytes));
		return p;
	}
};

static void serve(int connection)
{
	Session session; // CULPRIT
	for (int query = 0; query < 6; query++) {
		address p = session.allocate(250000 + connection * 10 + query * 3000);
		OK(cuMemFree_v2(p));
	}
}

int main()
{
	OK(cuInit(0));
	std::function<void(int)> handler = serve;
	for (int round = 0; round < 18; round++) {
		std::vector<std::thread> threads;
		for (int i = 0; i < 2; i++)
			threads.emplace_back(handler, round * 2 + i);
		for (auto &thread : threads)
			thread.join();
	}
	return 0;
}
