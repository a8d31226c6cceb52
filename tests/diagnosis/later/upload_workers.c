/* SPDX-License-Identifier: MIT */
/* Four uploading threads take jobs from a queue. Large ones get a pinned buffer of their own, and the thread forgets it. */
#include <pthread.h>

#include "../../apps/gpu.h"

enum { JOBS = 480, THREADS = 4 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int next_job;

struct staging {
	void *host;
	size_t bytes;
};

static int take_job(void)
{
	pthread_mutex_lock(&lock);
	int job = next_job < JOBS ? next_job++ : -1;
	pthread_mutex_unlock(&lock);
	return job;
}

static void staging_grow(struct staging *staging, size_t bytes)
{
	if (staging->bytes >= bytes)
		return;
	OK(cudaHostAlloc(&staging->host, bytes, 0)); /* CULPRIT */
}

static void upload(struct staging *staging, int job)
{
	void *device;
	size_t bytes = job % 4 == 2 ? 524288 : 60000;
	staging_grow(staging, bytes); /* CULPRIT */
	OK(cudaMalloc(&device, bytes));
	OK(cudaMemset(device, 0, bytes));
	OK(cudaFree(device));
}

static void *worker(void *unused)
{
	struct staging staging = {0};
	OK(cudaHostAlloc(&staging.host, 65536, 0));
	staging.bytes = 65536;
	for (int job; (job = take_job()) >= 0;)
		upload(&staging, job);
	OK(cudaFreeHost(staging.host));
	return unused;
}

int main(void)
{
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, worker, NULL));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	return 0;
}
