// SPDX-License-Identifier: MIT
// An array is reached through a dozen inlined layers. The journal keeps the arrays it is shown, the viewer does not.
#include <unistd.h>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

#define INLINE static inline __attribute__((always_inline))

INLINE void *storage(size_t bytes)
{
	void *p;
	OK(cudaMalloc(&p, bytes));
	return p;
}

template <int layer> struct view {
	INLINE void *open(size_t bytes) { return view<layer - 1>::open(bytes); }
};
template <> struct view<0> {
	INLINE void *open(size_t bytes) { return storage(bytes); }
};

static std::vector<void *> journal;

static __attribute__((noinline)) void write_entry(void)
{
	journal.push_back(view<11>::open(448 << 10)); // CULPRIT
}

static __attribute__((noinline)) void look(void)
{
	OK(cudaFree(view<11>::open(448 << 10)));
}

int main()
{
	for (int day = 0; day < 240; day++) {
		look();
		if (day % 2)
			write_entry();
		usleep(1000);
	}
	return 0;
}
