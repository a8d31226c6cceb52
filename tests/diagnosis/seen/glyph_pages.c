/* SPDX-License-Identifier: MIT */
/* A cache of glyph pages in texture arrays, four at a time. The oldest slot is taken again, but its array is only forgotten. */
#include "../../apps/gpu.h"

struct page {
	int font;
	void *array;
};
static struct page pages[4];
static int next;

static void *new_array(int side)
{
	struct channels one = {8, 0, 0, 0, 1};
	void *array;
	OK(cudaMallocArray(&array, &one, side, side, 0));
	return array;
}

static struct page *page_of(int font)
{
	for (int i = 0; i < 4; i++)
		if (pages[i].array && pages[i].font == font)
			return &pages[i];
	struct page *page = &pages[next++ % 4];
	page->font = font;
	page->array = new_array(font % 2 ? 1024 : 512); /* CULPRIT */
	return page;
}

int main(void)
{
	void *canvas;
	srand(3);
	OK(cudaMalloc(&canvas, 9 * MB));
	for (int text = 0; text < 250; text++) {
		void *quads;
		OK(cudaMalloc(&quads, 4096 + rand() % 4096));
		CHECK(page_of(rand() % 9)->array);
		OK(cudaFree(quads));
	}
	OK(cudaFree(canvas));
	return 0;
}
