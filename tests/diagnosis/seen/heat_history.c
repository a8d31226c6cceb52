/* SPDX-License-Identifier: MIT */
/* Heat in a plate. Each iteration keeps its residual so that the convergence can be drawn; the fields would have done as numbers. */
#include "../../apps/gpu.h"

struct field {
	double *data;
	size_t nx, ny;
	struct field *next;
};

static struct field *history;

static struct field *field_new(size_t nx, size_t ny)
{
	struct field *field = calloc(1, sizeof(*field));
	void *data;
	CHECK(field);
	OK(cudaMalloc(&data, nx * ny * sizeof(double)));
	*field = (struct field){data, nx, ny, NULL};
	return field;
}

static void field_free(struct field *field)
{
	OK(cudaFree(field->data));
	free(field);
}

static void relax(struct field *u, struct field *next)
{
	struct field *flux = field_new(u->nx, 64);
	struct field *residual = field_new(u->nx, 1); /* CULPRIT */
	residual->next = history;
	history = residual;
	field_free(flux);
	CHECK(next->nx == u->nx);
}

int main(void)
{
	struct field *u = field_new(1000, 1000), *v = field_new(1000, 1000);
	for (int i = 0; i < 2500; i++)
		relax(i % 2 ? v : u, i % 2 ? u : v);
	while (history) {
		struct field *first = history;
		history = first->next;
		field_free(first);
	}
	field_free(u);
	field_free(v);
	return 0;
}
