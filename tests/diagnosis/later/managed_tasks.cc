// SPDX-License-Identifier: MIT
// Tasks as std::function in a queue of two threads; results are managed memory in shared pointers that form a circle.
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

extern "C" {
#include "../../apps/gpu.h"
}

struct Managed {
	void *p = nullptr;
	explicit Managed(size_t bytes) { OK(cudaMallocManaged(&p, bytes, 1)); }
	Managed(const Managed &) = delete;
	~Managed() { OK(cudaFree(p)); }
};

class Executor {
	std::deque<std::function<void()>> tasks;
	std::mutex mutex;
	std::condition_variable ready;
	bool closed = false;
	std::thread threads[2];

	void loop()
	{
		for (;;) {
			std::unique_lock<std::mutex> hold(mutex);
			ready.wait(hold, [this] { return closed || !tasks.empty(); });
			if (tasks.empty())
				return;
			auto task = std::move(tasks.front());
			tasks.pop_front();
			hold.unlock();
			task();
		}
	}

public:
	Executor()
	{
		for (auto &thread : threads)
			thread = std::thread([this] { loop(); });
	}
	void post(std::function<void()> task)
	{
		{
			std::lock_guard<std::mutex> hold(mutex);
			tasks.push_back(std::move(task));
		}
		ready.notify_one();
	}
	~Executor()
	{
		{
			std::lock_guard<std::mutex> hold(mutex);
			closed = true;
		}
		ready.notify_all();
		for (auto &thread : threads)
			thread.join();
	}
};

struct Node {
	Managed values;
	std::shared_ptr<Node> sibling;
	explicit Node(size_t bytes) : values(bytes) {}
};

static void split(size_t bytes)
{
	Managed scratch(bytes / 8);
	auto left = std::make_shared<Node>(bytes);  // CULPRIT
	auto right = std::make_shared<Node>(bytes); // CULPRIT
	left->sibling = right;
	right->sibling = left; // CULPRIT
}

int main()
{
	Executor executor;
	for (int i = 0; i < 120; i++)
		executor.post([] { split(196608); });
	return 0;
}
