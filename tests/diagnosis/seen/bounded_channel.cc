// SPDX-License-Identifier: MIT
// A channel of at most forty frames between a fast producer and a slow consumer: it fills, and stays full.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

extern "C" {
#include "../../apps/gpu.h"
}

class Channel {
	std::deque<void *> frames;
	std::mutex lock;
	std::condition_variable changed;
	size_t most;

public:
	explicit Channel(size_t n) : most(n) {}
	void put(void *frame)
	{
		std::unique_lock<std::mutex> hold(lock);
		changed.wait(hold, [this] { return frames.size() < most; });
		frames.push_back(frame);
		changed.notify_all();
	}
	void *get()
	{
		std::unique_lock<std::mutex> hold(lock);
		changed.wait(hold, [this] { return !frames.empty(); });
		void *frame = frames.front();
		frames.pop_front();
		changed.notify_all();
		return frame;
	}
};

static void *frame_of(size_t bytes)
{
	void *p;

	OK(cudaMalloc(&p, bytes));
	return p;
}

int main()
{
	Channel channel(40);
	std::thread producer([&] {
		for (int number = 0; number < 300; number++)
			channel.put(frame_of(333000));
	});

	for (int number = 0; number < 300; number++) {
		void *frame = channel.get(), *out = frame_of(50000);
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
		OK(cudaFree(out));
		OK(cudaFree(frame));
	}
	producer.join();
	return 0;
}
