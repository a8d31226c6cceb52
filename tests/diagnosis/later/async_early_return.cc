// SPDX-License-Identifier: MIT
// Work areas of a stream-ordered pool. A step that converged at once returns early, past the free.
#include <array>
#include <cstdlib>

extern "C" {
#include "../../apps/gpu.h"
}

class Stream {
	void *handle;

public:
	Stream() { OK(cudaStreamCreate(&handle)); }
	~Stream() { OK(cudaStreamDestroy(handle)); }
	void *get() const { return handle; }
	void wait() const { OK(cudaStreamSynchronize(handle)); }
};

template <typename T> T *allocate(const Stream &stream, size_t count)
{
	void *p;
	OK(cudaMallocAsync(&p, count * sizeof(T), stream.get()));
	return static_cast<T *>(p);
}
template <typename T> void release(const Stream &stream, T *p)
{
	OK(cudaFreeAsync(p, stream.get()));
}

static bool converged(int step)
{
	return step % 3 == 1;
}

static int line_search(const Stream &stream, int step)
{
	float *direction = allocate<float>(stream, 123456); // CULPRIT
	double *trial = allocate<double>(stream, 4000 + step % 11 * 100);
	release(stream, trial);
	if (converged(step))
		return 0; // CULPRIT
	release(stream, direction);
	return 1;
}

int main()
{
	std::array<Stream, 2> streams;
	float *x = allocate<float>(streams[0], 2000000);
	int searched = 0;
	for (int step = 0; step < 400; step++) {
		searched += line_search(streams[step % 2], step);
		streams[step % 2].wait();
	}
	release(streams[0], x);
	printf("%d\n", searched);
	return 0;
}
