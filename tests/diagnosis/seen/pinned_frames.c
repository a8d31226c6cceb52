/* SPDX-License-Identifier: MIT */
/* Decodes a film: each frame is copied to the device through a page-locked buffer of its own. */
#include "../../apps/gpu.h"

struct frame {
	void *host, *device;
	size_t bytes;
};

static void *page_locked(size_t bytes)
{
	void *p;
	OK(cudaMallocHost(&p, bytes));
	return p;
}

static void *on_device(size_t bytes)
{
	void *p;
	OK(cudaMalloc(&p, bytes));
	return p;
}

static void frame_open(struct frame *frame, size_t width, size_t height)
{
	frame->bytes = width * height * 3 / 2;
	frame->host = page_locked(frame->bytes); /* CULPRIT */
	frame->device = on_device(frame->bytes);
}

static void frame_close(struct frame *frame)
{
	OK(cudaFree(frame->device));
	frame->device = NULL;
}

int main(void)
{
	void *reference = on_device(24 * MB), *table = page_locked(MB);
	for (int i = 0; i < 160; i++) {
		struct frame frame;
		frame_open(&frame, 640, 360);
		frame_close(&frame);
	}
	OK(cudaFreeHost(table));
	OK(cudaFree(reference));
	return 0;
}
