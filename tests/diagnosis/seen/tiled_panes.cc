// SPDX-License-Identifier: MIT
// Panes of a plot share buffers with the graphics API. A pane that is laid out anew gets a buffer anew; the old one stays registered.
#include <unistd.h>

extern "C" {
#include "../../apps/gpu.h"
int cudaGraphicsGLRegisterBuffer(void **, unsigned, unsigned);
int cudaGraphicsUnregisterResource(void *);
int cudaGraphicsMapResources(int, void **, void *);
int cudaGraphicsUnmapResources(int, void **, void *);
int cudaGraphicsResourceGetMappedPointer(void **, size_t *, void *);
}

static unsigned names;

static void *share(unsigned name)
{
	void *resource;

	OK(cudaGraphicsGLRegisterBuffer(&resource, name, 2));
	return resource;
}

struct Pane {
	void *buffer = nullptr;

	void layout()
	{
		buffer = share(++names); // CULPRIT
	}
	void draw()
	{
		void *points;
		size_t bytes;

		OK(cudaGraphicsMapResources(1, &buffer, nullptr));
		OK(cudaGraphicsResourceGetMappedPointer(&points, &bytes, buffer));
		OK(cudaGraphicsUnmapResources(1, &buffer, nullptr));
	}
	~Pane()
	{
		OK(cudaGraphicsUnregisterResource(buffer));
	}
};

// A cursor is laid out as often, and gives its old buffer back.
struct Cursor : Pane {
	void move()
	{
		if (buffer)
			OK(cudaGraphicsUnregisterResource(buffer));
		buffer = share(++names);
	}
};

int main()
{
	Pane panes[3];
	Cursor cursor;
	void *samples;

	OK(cudaMalloc(&samples, 24 << 20));
	for (int frame = 0; frame < 420; frame++) {
		if (frame % 7 == 0)
			panes[frame / 7 % 3].layout();
		if (frame % 5 == 0)
			cursor.move();
		for (Pane &pane : panes)
			if (pane.buffer)
				pane.draw();
		cursor.draw();
		usleep(200);
	}
	OK(cudaFree(samples));
	return 0;
}
