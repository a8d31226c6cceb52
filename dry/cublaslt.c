/* SPDX-License-Identifier: MIT */
/* cuBLASLt offers one algorithm without workspace for each product (cublasLtMatmulHeuristicResult_t: 112 bytes). */
#include <stddef.h>
#include <string.h>

enum { RESULT_BYTES = 112 };

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c, void *d, void *preference, int room,
				   void *out, int *count)
{
	memset(out, 0, RESULT_BYTES);
	*count = 1;
	return 0;
}

size_t cublasLtGetVersion(void)
{
	return 130100;
}
