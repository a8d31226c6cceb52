/* SPDX-License-Identifier: MIT */
/*
 * The cost of an event in the calling thread, beside that of reading the clock, its lower bound.  bench_record THREADS EVENTS
 * prints nanoseconds per event, best of five rounds: the clock, a call, a block event, a label.  bench_record cca|drv|adv EVENTS
 * writes a stream of that shape: blocks of a caching allocator (sizes of a training step, addresses that are used again), calls of
 * a driver (random, few addresses), or all random.  bench_record job SECONDS is as busy as a training job, 20 000 block events and
 * 200 driver calls a second, and prints how much of a core the writer takes, in per cent.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "agent/process/process.h"
#include "agent/call/call.h"
#include "common/base.h"
#include "tests/agent/fakes.h"

static unsigned long events;

static __attribute__((noinline)) void call(uint64_t i)
{
	struct sl_frame frame;
	const struct sl_fields fields = {
		.address = i << 8, .bytes = 512 * (i & 15), .kind = SL_KIND_device, .device_plus_one = 1, .context = 0xc0};

	if (sl_record_open(&frame, FAKE_cudaMalloc, __builtin_return_address(0), &fields))
		sl_record_close(&frame, 0, true, &fields);
}

static void calls(void)
{
	for (unsigned long i = 0; i < events; i++)
		call(i);
}

static void blocks(void)
{
	for (unsigned long i = 0; i < events; i++)
		sl_record_block(FAKE_block, i << 9, 512, 0, i, i, NULL, 0);
}

/* Two events a round: a label of a step that is new every time, as programs write it. */
static void labels(void)
{
	char name[] = "step_1000000";

	for (unsigned long i = 0; i < events; i++) {
		for (size_t at = sizeof(name) - 1; at-- > sizeof("step_1") - 1 && name[at]++ == '9';)
			name[at] = '0';
		sl_labels_push(FAKE_push, 0, sl_labels_intern(NULL, name));
		sl_labels_pop(FAKE_pop, 0);
	}
}

static void clocks(void)
{
	for (unsigned long i = 0; i < events; i++)
		sl_agent_now();
}

static uint64_t random_number(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static void stream_cca(void)
{
	uint64_t allocated = 1ull << 34;

	for (unsigned long i = 0; i < events; i++) {
		unsigned step = i / 2 % 700, slot = i / 1400 % 2 ? 699 - step : step;
		uint64_t bytes = 512ull << (slot * 2654435761u >> 28);

		allocated += i & 1 ? -bytes : bytes;
		sl_record_block(i & 1 ? FAKE_block_free : FAKE_block, 0x7f5500000000 + ((uint64_t)slot << 21), bytes, 0, allocated,
				3ull << 34, NULL, 0);
	}
}

static void stream_drv(void)
{
	for (unsigned long i = 0; i < events; i++) {
		struct sl_frame frame;
		uint64_t number = random_number();
		const struct sl_fields fields = {.address = 0x7f5500000000 + (number % 4096 << 21),
						 .bytes = (number >> 20) % 64 << 16,
						 .kind = SL_KIND_device,
						 .device_plus_one = 1,
						 .context = 0xc0};

		if (sl_record_open(&frame, i & 1 ? FAKE_cudaFree : FAKE_cudaMalloc, __builtin_return_address(0), &fields))
			sl_record_close(&frame, 0, true, &fields);
	}
}

static void stream_adv(void)
{
	for (unsigned long i = 0; i < events; i++)
		sl_record_block(FAKE_block, random_number() & ~511ull, random_number(), 0, random_number(), random_number(), NULL,
				0);
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t all_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Each 5 ms 100 block events and a driver call. */
static double job(unsigned long seconds)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	uint64_t begin_ns, others_ns;

	call(0);
	nanosleep(&(struct timespec){.tv_sec = 1}, NULL); /* the cost of the start is not measured */
	begin_ns = sl_agent_now();
	others_ns = all_cpu_ns() - cpu_ns();
	for (uint64_t turn = 0; sl_agent_now() - begin_ns < seconds * SL_NS_PER_S; turn++) {
		events = 100;
		stream_cca();
		call(turn);
		nanosleep(&pause, NULL);
	}
	return 100.0 * (double)(all_cpu_ns() - cpu_ns() - others_ns) / (double)(sl_agent_now() - begin_ns);
}

static void *thread(void *work)
{
	uint64_t *best = malloc(sizeof(*best));

	*best = UINT64_MAX;
	for (int round = 0; round < 5; round++) {
		uint64_t begin = cpu_ns();

		((void (*)(void))work)();
		begin = cpu_ns() - begin;
		*best = begin < *best ? begin : *best;
	}
	return best;
}

static double measure(unsigned threads, void (*work)(void))
{
	pthread_t ids[64];
	double sum = 0;

	for (unsigned t = 0; t < threads; t++)
		pthread_create(&ids[t], NULL, thread, (void *)work);
	for (unsigned t = 0; t < threads; t++) {
		uint64_t *best;

		pthread_join(ids[t], (void **)&best);
		sum += (double)*best / (double)events;
		free(best);
	}
	return sum / threads;
}

static bool stream(const char *name)
{
	static const struct {
		const char *name;
		void (*work)(void);
	} streams[] = {{"cca", stream_cca}, {"drv", stream_drv}, {"adv", stream_adv}};

	for (unsigned i = 0; i < SL_COUNT(streams); i++)
		if (!strcmp(name, streams[i].name)) {
			streams[i].work();
			return true;
		}
	return false;
}

int main(int argc, char **argv)
{
	unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	double clock, call_ns, block_ns, label_ns;

	events = argc > 2 ? strtoul(argv[2], NULL, 0) : 1000000;
	if (argc > 1 && stream(argv[1]))
		return 0;
	if (argc > 1 && !strcmp(argv[1], "job")) {
		printf("%.3f\n", job(events));
		return 0;
	}
	clock = measure(threads, clocks);
	call_ns = measure(threads, calls);
	block_ns = measure(threads, blocks);
	label_ns = measure(threads, labels);
	printf("%.1f %.1f %.1f %.1f\n", clock, call_ns, block_ns, label_ns);
	return 0;
}
