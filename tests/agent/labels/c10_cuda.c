/* SPDX-License-Identifier: MIT */
/* An allocator above the stand-in libc10, and an engine whose thread allocates for it. */
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "tests/agent/labels/c10.h"

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

struct vector {
	void *begin, *end, *limit;
};

struct vector execute(void *engine, void *roots, void *inputs, bool keep, bool create, bool accumulate,
		      void *outputs) __asm__("_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_"
					     "IN2at6TensorESaIS9_EEbbbS7_");
void exercise(void);
int backward(int passes, void (*inside)(void));
void allocate(uintptr_t address, int64_t size);

static const struct device cpu = {0, -1}, cuda0 = {1, 0}, cuda1 = {1, 1}, hip = {6, 2}, mps = {13, 0};

void allocate(uintptr_t address, int64_t size)
{
	report((void *)address, size, TOTALS_OF(10, 20) cuda0);
}

void exercise(void)
{
	report((void *)0x1000, 1024, TOTALS_OF(1024, 2 << 20) cuda0);
	report((void *)0x2000, 512, TOTALS_OF(512, 4 << 20) cuda1);
	report((void *)0x3000, 0, TOTALS_OF(1024, 2 << 20) cuda0);
	report((void *)0x1000, -1024, TOTALS_OF(0, 2 << 20) cuda0);
	report((void *)0x4000, 64, TOTALS_OF(64, 64) hip);
	report((void *)0x5000, 32, TOTALS_OF(32, 32) mps);
	if (profiling())
		report((void *)0x6000, 16, TOTALS_OF(16, 0) cpu);
#ifdef OOM_NAME
	out_of_memory(1ull << 40, 512, 4 << 20, cuda1);
#endif
	printf("%llu %llu %llu\n", (unsigned long long)c10_seen[0], (unsigned long long)c10_seen[1],
	       (unsigned long long)c10_seen[2]);
}

static void *device_thread(void *name)
{
	void *segment;

	if (name)
		prctl(PR_SET_NAME, name);
	cudaMalloc(&segment, 0x7000);
	allocate(0x7000, 256);
	cudaFree(segment);
	return NULL;
}

/* Engine::execute's stand-in.  It calls `roots` at the end, from where an exception may come. */
struct vector execute(void *engine, void *roots, void *inputs, bool keep, bool create, bool accumulate, void *outputs)
{
	/* A thread of autograd, one of another library, and one without a name, as autograd's are in older versions. */
	static char *const names[] = {"pt_autograd_0", "watchdog", NULL};
	pthread_t thread;

	for (int i = 0; i < 3; i++) {
		pthread_create(&thread, NULL, device_thread, names[i]);
		pthread_join(thread, NULL);
	}
	if (roots)
		((void (*)(void))roots)();
	return (struct vector){engine, roots, keep && !create && accumulate ? outputs : NULL};
}

/* How many passes did not return what execute gave. */
int backward(int passes, void (*inside)(void))
{
	int wrong = 0, outputs;

	for (int i = 0; i < passes; i++) {
		struct vector got = execute(&wrong, (void *)inside, NULL, true, false, true, &outputs);

		wrong += got.begin != &wrong || got.end != (void *)inside || got.limit != &outputs;
	}
	return wrong;
}
