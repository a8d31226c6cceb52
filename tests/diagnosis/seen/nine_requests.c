/* SPDX-License-Identifier: MIT */
/* A server handles nine requests, slowly; the answer of each stays. */
#include "../../apps/gpu.h"
#include <unistd.h>

struct answer {
	struct answer *next;
	void *data;
};
static struct answer *answers;

static void remember(void *data)
{
	struct answer *answer = malloc(sizeof *answer);
	*answer = (struct answer){answers, data};
	answers = answer; /* CULPRIT: kept here */
}

static void *solve(int request)
{
	void *matrix, *result;
	OK(cudaMalloc(&matrix, (4 + request % 3) * MB));
	OK(cudaMalloc(&result, 2 * MB)); /* CULPRIT: asked here */
	usleep(15000);
	OK(cudaFree(matrix));
	return result;
}

int main(void)
{
	for (int request = 0; request < 9; request++)
		remember(solve(request));
	return 0;
}
