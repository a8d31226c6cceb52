/* SPDX-License-Identifier: MIT */
/* Pitched images; one that is resized loses its first buffer. */
extern "C" {
#include "../../apps/gpu.h"
}
#include <vector>

class Image {
	void *data = nullptr;
	size_t pitch = 0;
	int width = 0, height = 0;

public:
	Image(int w, int h) { create(w, h); }
	Image(const Image &) = delete;
	~Image() { OK(cudaFree(data)); }
	void create(int w, int h)
	{
		OK(cudaMallocPitch(&data, &pitch, w * 3, h)); // CULPRIT: asked here
		width = w;
		height = h;
	}
	void resize(int w, int h)
	{
		if (w != width || h != height)
			create(w, h); // CULPRIT: overwritten here
	}
};

static void thumbnail(int number)
{
	Image image(640 + number % 7 * 16, 480);
	Image blurred(640, 480);
	if (number % 2)
		image.resize(320, 240);
}

int main()
{
	for (int number = 0; number < 90; number++)
		thumbnail(number);
	return 0;
}
