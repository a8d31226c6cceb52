// SPDX-License-Identifier: MIT
// Writers of several formats behind one base class. Every 40 steps a restart file is written; its packed copy is freed by a destructor that is not virtual.
#include <memory>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

static void *grab(size_t bytes)
{
	void *p = nullptr;

	OK(cudaMalloc(&p, bytes));
	return p;
}

struct Writer {
	virtual void write(size_t bytes) = 0;
	~Writer() {} /* CULPRIT */
};
struct Text final : Writer {
	void write(size_t) override
	{
		void *line = grab(3000);
		cudaFree(line);
	}
};
struct Restart final : Writer {
	void *packed = nullptr;
	void write(size_t bytes) override { packed = grab(bytes); } /* CULPRIT */
	~Restart() { cudaFree(packed); }
};

static Writer *writer_for(int step)
{
	if (step % 40 == 39)
		return new Restart;
	return new Text;
}

static void output(int step, size_t bytes)
{
	Writer *writer = writer_for(step);

	writer->write(bytes); /* CULPRIT */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdelete-non-virtual-dtor"
	delete writer; /* CULPRIT */
#pragma GCC diagnostic pop
}

int main()
{
	void *mesh = grab(30 << 20);

	for (int step = 0; step < 480; step++) {
		void *forces = grab(500000);
		cudaFree(forces);
		output(step, 14000000);
	}
	cudaFree(mesh);
	return 0;
}
