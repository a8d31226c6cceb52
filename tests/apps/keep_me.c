/* SPDX-License-Identifier: MIT */
/*
 * keep_me JOURNAL THREADS EVENTS HOW [REST_US]: stands for a long job, for STORMLOG_KEEP.  Threads make and free blocks of a framework's
 * allocator at random, each other's too, under its mutex as in PyTorch.  Between them they call the driver from changing depths of
 * the stack, under changing labels, and start short threads.  JOURNAL is a mapped file, so it holds what was done even when the
 * program is killed.  HOW: exit, oom (an error and exit 1), stay (until it is killed).
 */
#define FLAVOUR 4
#include "tests/agent/labels/c10.h"

#include "gpu.h"
#include "writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS	16384
#define WEIGHTS 2048 /* slots whose blocks are made once and never freed */
#define RECENT	65536
#define BASE	0x500000000000

int nvtxRangePushA(const char *message);
int nvtxRangePop(void);

/* test_keep.py reads this layout. */
static struct journal {
	uint64_t events, allocations, bytes, allocated, peak; /* bytes: of all allocations */
	uint64_t under_way;				      /* slot + 1 of the block that is being made or freed; 0: none */
	uint64_t live[SLOTS];				      /* bytes */
	struct {
		uint64_t address;
		int64_t bytes; /* negative: freed */
	} recent[RECENT];
} * journal;

static const struct device cuda0 = {1, 0};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t limit;
static useconds_t rest_us;
static int writer;

/* Make the block of the slot, or free it. */
static bool turn(uint64_t slot, uint64_t bytes)
{
	uint64_t address = BASE + (slot << 9), size;
	bool more;

	pthread_mutex_lock(&mutex);
	size = journal->live[slot] ? -journal->live[slot] : bytes;
	journal->under_way = slot + 1;
	atomic_signal_fence(memory_order_seq_cst);
	report((void *)address, (int64_t)size, journal->allocated + size, 1 << 30, cuda0);
	atomic_signal_fence(memory_order_seq_cst);
	journal->allocated += size;
	journal->peak = journal->allocated > journal->peak ? journal->allocated : journal->peak;
	journal->allocations += !journal->live[slot];
	journal->bytes += journal->live[slot] ? 0 : bytes;
	journal->live[slot] = journal->live[slot] ? 0 : bytes;
	journal->recent[journal->events % RECENT].address = address;
	journal->recent[journal->events % RECENT].bytes = (int64_t)size;
	more = ++journal->events < limit;
	atomic_signal_fence(memory_order_seq_cst);
	journal->under_way = 0;
	pthread_mutex_unlock(&mutex);
	return more;
}

static __attribute__((noinline)) void call_from(unsigned depth)
{
	void *segment;

	if (depth) {
		call_from(depth - 1);
		__asm__ volatile(""); /* no tail call */
		return;
	}
	OK(cudaMalloc(&segment, 1 << 20));
	OK(cudaFree(segment));
}

static void *visitor(void *arg)
{
	for (unsigned i = 0; i < 16; i++)
		turn(WEIGHTS + (unsigned)(intptr_t)arg % 64, 777);
	call_from((unsigned)(intptr_t)arg % 50);
	return NULL;
}

static void *work(void *arg)
{
	unsigned seed = (unsigned)(intptr_t)arg, step = 0;
	bool more = true;
	char label[32];

	for (; more; step++) {
		snprintf(label, sizeof(label), "part %c%c", 'a' + step / 20 % 26, 'a' + (char)seed % 26);
		nvtxRangePushA(label);
		for (unsigned i = 0; more && i < 1000; i++)
			more = turn(WEIGHTS + (unsigned)rand_r(&seed) % (SLOTS - WEIGHTS), 512 + (unsigned)rand_r(&seed) % 65536);
		call_from(step % 40);
		if (step % 16 == 5) {
			pthread_t guest;

			CHECK(!pthread_create(&guest, NULL, visitor, (void *)(intptr_t)step));
			CHECK(!pthread_join(guest, NULL));
		}
		nvtxRangePop();
		usleep(rest_us);
		wait_for_writer_to_sleep(writer);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int fd, threads;
	pthread_t t[16];
	void *held;

	CHECK(argc == 5 || argc == 6);
	fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && !ftruncate(fd, sizeof(*journal)));
	journal = mmap(NULL, sizeof(*journal), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(journal != MAP_FAILED);
	threads = atoi(argv[2]);
	rest_us = argc > 5 ? (useconds_t)atoi(argv[5])
			   : 10000 * (useconds_t)threads; /* 100 000 events a second: few in the 0.1 s that the writer sleeps */
	limit = strcmp(argv[4], "stay") ? strtoull(argv[3], NULL, 10) : UINT64_MAX;
	OK(cudaMalloc(&held, 3 << 20));
	writer = writer_thread();
	for (unsigned i = 0; i < WEIGHTS; i++)
		turn(i, 4096 + i * 512);
	for (int i = 0; i < threads; i++)
		CHECK(!pthread_create(&t[i], NULL, work, (void *)(intptr_t)(i + 1)));
	for (int i = 0; i < threads; i++)
		CHECK(!pthread_join(t[i], NULL));
	if (strcmp(argv[4], "oom"))
		return 0;
	CHECK(cudaMalloc(&held, 1ull << 50) == OUT_OF_MEMORY);
	out_of_memory(1ull << 50, journal->allocated, 1 << 30, cuda0);
	return 1;
}
