/* SPDX-License-Identifier: MIT */
/* Prints how many million events a second one core decodes, orders and replays: cca (PyTorch-like blocks), drv (driver calls). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/model/state/model.h"
#include "analyzer/trace/files.h"
#include "analyzer/model/replay/replay.h"
#include "tests/analyzer/synth.h"

#define LIVE 2000

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

static void make(const char *folder, bool blocks, unsigned events)
{
	struct sl_synth *s = synth_new(folder, 0, 1);
	static uint64_t live[LIVE];
	uint64_t seed = 88172645463325252ull, total = 0;

	memset(live, 0, sizeof(live));
	for (unsigned i = 0; i < events; i++) {
		uint64_t at = random_next(&seed) % LIVE, bytes = live[at] ? live[at] : 512ull << random_next(&seed) % 12;

		total = live[at] ? total - bytes : total + bytes;
		if (blocks)
			synth_call(s, 1, live[at] ? "block_free" : "block_alloc", .address = 0x7f0000000000 + at * (4 << 20),
				   .bytes = bytes, .extra = total, .extra2 = 8ull << 30);
		else if (live[at])
			synth_call(s, 1, "cudaFree", .address = 0x7f0000000000 + at * (4 << 20));
		else
			synth_call(s, 1, "cudaMalloc", .address = 0x7f0000000000 + at * (4 << 20), .bytes = bytes);
		live[at] = live[at] ? 0 : bytes;
	}
	synth_close(s, SYNTH_COMPLETED);
}

static double replay(const char *folder)
{
	struct sl_images images = {0};
	struct sl_damage damage = {0};
	struct timespec begin, end;
	const struct sl_item *item;

	sl_images_add(&images, folder);
	sl_images_group(&images);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	struct sl_trace *trace = sl_trace_open(&images.images[0], &damage);
	struct sl_model *model = sl_replay_new(&trace->header, &trace->defs);
	struct sl_order *order = sl_order_new(trace);

	while ((item = sl_order_next(order)))
		sl_replay_apply(model, item);
	sl_replay_end(model, false);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
	double rate = (double)model->events / seconds / 1e6;

	sl_order_free(order);
	sl_replay_free(model);
	sl_trace_close(trace);
	sl_images_free(&images);
	return rate;
}

int main(int argc, char **argv)
{
	unsigned events = argc > 1 ? (unsigned)atoi(argv[1]) : 4000000;

	for (int blocks = 1; blocks >= 0; blocks--) {
		char folder[] = "/tmp/sl-bench-XXXXXX", path[64];
		double best = 0;

		if (!mkdtemp(folder))
			return 1;
		make(folder, blocks, events);
		for (int i = 0; i < 3; i++) {
			double rate = replay(folder);

			best = rate > best ? rate : best;
		}
		printf("%s  %6.1f M events/s\n", blocks ? "cca" : "drv", best);
		snprintf(path, sizeof(path), "%s/rank-00000-1.msgpack.zst", folder);
		unlink(path);
		rmdir(folder);
	}
	return 0;
}
