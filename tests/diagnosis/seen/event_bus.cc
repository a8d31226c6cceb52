// SPDX-License-Identifier: MIT
// An event bus of std::function: each request subscribes a lambda that holds its tile, and unsubscribes by comparing something that is never equal.
#include <functional>
#include <list>
#include <memory>

extern "C" {
#include "../../apps/gpu.h"
}

class Tile {
	void *memory = nullptr;

public:
	explicit Tile(size_t bytes) { OK(cudaMalloc(&memory, bytes)); }
	~Tile() { cudaFree(memory); }
};

class Bus {
	std::list<std::pair<const void *, std::function<void(int)>>> handlers;

public:
	void subscribe(const void *who, std::function<void(int)> what) { handlers.emplace_back(who, std::move(what)); }
	void unsubscribe(const void *who)
	{
		handlers.remove_if([who](auto &handler) { return &handler.first == who; }); /* CULPRIT */
	}
	void publish(int event)
	{
		for (auto &handler : handlers)
			handler.second(event);
	}
};

struct Request {
	std::shared_ptr<Tile> tile;

	Request(Bus &bus, size_t bytes) : tile(std::make_shared<Tile>(bytes)) /* CULPRIT */
	{
		bus.subscribe(this, [kept = tile](int) {}); /* CULPRIT */
	}
};

static void render(Bus &bus, int number)
{
	Request request(bus, 131000);
	Tile target(260000);

	bus.publish(number);
	bus.unsubscribe(&request);
}

int main()
{
	Bus bus;
	Tile atlas(8 << 20);

	for (int number = 0; number < 290; number++)
		render(bus, number); /* CULPRIT */
	return 0;
}
