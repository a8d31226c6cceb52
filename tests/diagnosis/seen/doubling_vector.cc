// SPDX-License-Identifier: MIT
// Collects contacts in a vector on the device that doubles when it is full; the number of contacts levels off.
#include <cstdlib>
#include <utility>

extern "C" {
#include "../../apps/gpu.h"
}

template <typename T> class DeviceVector
{
      public:
	void push_many(size_t count)
	{
		used += count;
		if (used > capacity)
			grow();
	}
	void clear()
	{
		used = 0;
	}
	~DeviceVector()
	{
		cudaFree(data);
	}

      private:
	void grow()
	{
		size_t wanted = capacity ? capacity : 1024;
		while (wanted < used)
			wanted *= 2;
		void *larger = nullptr;
		if (cudaMalloc(&larger, wanted * sizeof(T)))
			std::abort();
		cudaFree(std::exchange(data, larger));
		capacity = wanted;
	}
	void *data = nullptr;
	size_t used = 0, capacity = 0;
};

int main()
{
	DeviceVector<double[4]> contacts;
	for (int step = 0; step < 400; step++) {
		contacts.clear();
		contacts.push_many(step < 120 ? 1000 * (step + 1) : 118000 + rand() % 4000);
		void *forces = nullptr;
		if (cudaMalloc(&forces, 2 << 20))
			std::abort();
		cudaFree(forces);
	}
}
