/* SPDX-License-Identifier: MIT */
/* Functions that must do more than return 0.  Each stub library exports those of them that are imported from it. */

typedef int cublas_status;

/* Reports one algorithm and fills in none. */
cublas_status cublasLtMatmulAlgoGetHeuristic(void *handle, void *compute, void *a, void *b, void *c, void *d, void *preference,
					     int wanted, void *results, int *found)
{
	*found = 1;
	return 0;
}

static char object; /* what every created handle points to */

static cublas_status create(void **handle)
{
	*handle = &object;
	return 0;
}

cublas_status cublasCreate_v2(void **handle)
{
	return create(handle);
}

cublas_status cublasLtCreate(void **handle)
{
	return create(handle);
}
