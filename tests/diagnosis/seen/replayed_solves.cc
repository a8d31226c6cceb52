// SPDX-License-Identifier: MIT
// A solver records its sweeps as a graph for each right side that it is given; the executable is destroyed, the graph is not.
extern "C" {
#include "../../apps/gpu.h"
int cudaStreamBeginCapture(void *, int);
int cudaStreamEndCapture(void *, void **);
int cudaMallocAsync(void **, size_t, void *);
int cudaFreeAsync(void *, void *);
int cudaGraphInstantiateWithFlags(void **, void *, unsigned long long);
int cudaGraphLaunch(void *, void *);
int cudaGraphExecDestroy(void *);
int cudaGraphDestroy(void *);
}

class Recorder
{
	void *stream;

      public:
	explicit Recorder(void *on) : stream(on)
	{
		OK(cudaStreamBeginCapture(stream, 0));
	}
	void *finish()
	{
		void *graph;

		OK(cudaStreamEndCapture(stream, &graph));
		return graph;
	}
};

struct Sweeps {
	void *graph, *exec;

	Sweeps(void *stream, size_t rows)
	{
		Recorder recorder(stream);
		void *scratch;

		OK(cudaMallocAsync(&scratch, rows * 4096, stream));
		OK(cudaFreeAsync(scratch, stream));
		graph = recorder.finish(); // CULPRIT: asked here
		OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	}
	~Sweeps()
	{
		OK(cudaGraphExecDestroy(exec));
	} // CULPRIT: forgotten here
};

static void solve(void *stream, int side)
{
	Sweeps sweeps(stream, 100 + side % 9);

	OK(cudaGraphLaunch(sweeps.exec, stream));
	OK(cudaStreamSynchronize(stream));
}

int main()
{
	void *stream, *matrix;

	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc(&matrix, 96 << 20));
	for (int side = 0; side < 400; side++)
		solve(stream, side); // CULPRIT
	OK(cudaFree(matrix));
	return 0;
}
