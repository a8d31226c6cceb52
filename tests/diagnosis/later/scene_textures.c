/* SPDX-License-Identifier: MIT */
/* A renderer loads the textures of a scene as arrays; the scene before is closed, but for its shadow map. */
#include "../../apps/gpu.h"

struct scene {
	void *albedo, *normal, *shadow;
	void *vertices;
};

static const struct channels rgba = {8, 8, 8, 8, 1}, depth = {32, 0, 0, 0, 2};

static void *texture(const struct channels *format, size_t width, size_t height)
{
	void *array;
	OK(cudaMallocArray(&array, format, width, height, 0));
	return array;
}

static void scene_open(struct scene *scene, int number)
{
	OK(cudaMalloc(&scene->vertices, 100000 + number % 5 * 20000));
	scene->albedo = texture(&rgba, 512, 512);
	scene->normal = texture(&rgba, 256, 512);
	scene->shadow = texture(&depth, 640, 640); /* CULPRIT */
}

static void scene_close(struct scene *scene)
{
	OK(cudaFreeArray(scene->albedo));
	OK(cudaFreeArray(scene->normal));
	OK(cudaFree(scene->vertices));
}

int main(void)
{
	void *frame[2];
	for (int i = 0; i < 2; i++)
		OK(cudaMalloc(&frame[i], 1920 * 1080 * 4));
	for (int number = 0; number < 130; number++) {
		struct scene scene;
		scene_open(&scene, number); /* CULPRIT */
		scene_close(&scene);
	}
	for (int i = 0; i < 2; i++)
		OK(cudaFree(frame[i]));
	return 0;
}
