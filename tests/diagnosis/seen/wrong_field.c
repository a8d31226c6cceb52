/* SPDX-License-Identifier: MIT */
/* A mesh is refined: five fields get larger ones; the old `normals` is not freed, `normals_old` is (which is NULL). */
#include "../../apps/gpu.h"

struct mesh {
	size_t n;
	void *x, *y, *z, *normals, *normals_old;
};

static void *field(size_t n)
{
	void *p;
	OK(cudaMalloc(&p, n * 8));
	return p;
}

static void replace(void **at, size_t n)
{
	OK(cudaFree(*at));
	*at = field(n);
}

static void refine(struct mesh *mesh)
{
	mesh->n += mesh->n / 16;
	replace(&mesh->x, mesh->n);
	replace(&mesh->y, mesh->n);
	replace(&mesh->z, mesh->n);
	OK(cudaFree(mesh->normals_old));
	mesh->normals = field(3 * mesh->n); /* CULPRIT */
}

int main(void)
{
	struct mesh mesh = {.n = 20000};
	for (int i = 0; i < 40; i++)
		refine(&mesh);
	OK(cudaFree(mesh.x));
	OK(cudaFree(mesh.y));
	OK(cudaFree(mesh.z));
	OK(cudaFree(mesh.normals));
	return 0;
}
