/* SPDX-License-Identifier: MIT */
/* Particles leave and enter a cell list. A message that is malformed is given up, with the buffer it was unpacked into. */
#include "../../apps/gpu.h"

struct parcel {
	void *coordinates, *charges;
	int count;
};

static int dev_new(void **p, size_t n)
{
	int rc = cudaMalloc(p, n);
	if (rc)
		fprintf(stderr, "cudaMalloc: %s\n", cudaGetErrorString(rc));
	return rc;
}

static int is_valid(const struct parcel *parcel)
{
	return parcel->count % 5 != 0;
}

static int unpack(struct parcel *parcel, int count)
{
	int rc = -1;
	parcel->count = count;
	if (dev_new(&parcel->coordinates, 450000)) /* CULPRIT */
		return -1;
	if (dev_new(&parcel->charges, (size_t)count * 4))
		goto no_charges;
	if (!is_valid(parcel))
		goto out; /* CULPRIT */
	rc = 0;
	cudaFree(parcel->coordinates);
out:
	cudaFree(parcel->charges);
	return rc;
no_charges:
	cudaFree(parcel->coordinates);
	return -1;
}

int main(void)
{
	void *cells;
	int rejected = 0;
	struct parcel parcel;
	srand(77);
	OK(cudaMalloc(&cells, 90 * MB));
	for (int i = 0; i < 2000; i++)
		rejected += unpack(&parcel, 20000 + rand() % 1000) != 0;
	printf("%d parcels rejected\n", rejected);
	return cudaFree(cells);
}
