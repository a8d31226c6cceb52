/* SPDX-License-Identifier: MIT */
/* A plate that is refined where it is hot: two fields, read and written in turn.  Both grow by an eighth; one old one is freed. */
#include <unistd.h>
#include <utility>

extern "C" {
#include "../../apps/gpu.h"
}

class Plate {
	void *now = nullptr, *next = nullptr;
	size_t cells = 0, room = 0;

	static void *field(size_t cells)
	{
		void *p = nullptr;
		OK(cudaMalloc(&p, cells * sizeof(double)));
		return p;
	}

	void reserve(size_t count)
	{
		size_t wanted = room + room / 8 > count ? room + room / 8 : count;

		if (count <= room)
			return;
		void *larger = field(wanted); /* CULPRIT: asked here */
		if (now)
			OK(cudaFree(now));
		now = larger;
		next = field(wanted); /* CULPRIT: the old one is lost here */
		room = wanted;
	}

public:
	void refine(size_t more)
	{
		reserve(cells += more);
	}

	void step()
	{
		std::swap(now, next);
	}

	~Plate()
	{
		OK(cudaFree(now));
		OK(cudaFree(next));
	}
};

int main()
{
	Plate plate;

	plate.refine(100000);
	for (int tick = 0; tick < 400; tick++) {
		if (tick % 3 == 0)
			plate.refine(1500 + tick * 613 % 900);
		usleep(700);
		plate.step();
	}
	return 0;
}
