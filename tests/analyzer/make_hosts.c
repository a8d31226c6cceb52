/* SPDX-License-Identifier: MIT */
/*
 * make_hosts FOLDER AHEAD MEETINGS WIDTH FIRST SECOND: ranks 0 and 1 on node-a, 2 and 3 on node-b, whose clock is AHEAD ms
 * ahead.  Together they make MEETINGS communicators, each of which takes WIDTH ms.  Rank 2 runs out of memory at FIRST ms, rank 0
 * at SECOND ms of the true time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "synth.h"

#define MS 1000000ull
enum { WORLD = 4 };

static uint64_t at(uint64_t ms)
{
	return SYNTH_START_NS + ms * MS;
}

/* Ranks enter one after the other, the last with a tenth of the time left; all leave together. */
static void meet(struct sl_synth *s, int rank, uint64_t number, uint64_t width)
{
	uint64_t end = at(1000 * (number + 1)) + width * MS,
		 late = width * MS * (uint64_t)(9 * ((rank + (int)number) % WORLD)) / 10 / (WORLD - 1);

	synth_call(s, 1, "ncclCommInitRank", .time_ns = end, .duration_ns = width * MS - late, .extra = (uint64_t)rank,
		   .extra2 = WORLD);
}

int main(int argc, char **argv)
{
	uint64_t number[5];

	if (argc != 7)
		return 2;
	for (int i = 0; i < 5; i++)
		number[i] = strtoull(argv[i + 2], NULL, 10);
	for (int rank = 0; rank < WORLD; rank++) {
		struct synth_place place = {rank < 2 ? "node-a" : "node-b", rank < 2 ? 0 : number[0] * MS, WORLD};
		char uuid[16];
		struct sl_synth *s;

		snprintf(uuid, sizeof(uuid), "GPU-%d", rank);
		s = synth_new_on(argv[1], rank, 100 + rank, "hosts", uuid, &place);
		synth_call(s, 1, "cudaMalloc", .time_ns = at(10), .address = 0x1000, .bytes = 1 << 20, .device = 0);
		for (uint64_t i = 0; i < number[1]; i++)
			meet(s, rank, i, number[2]);
		if (rank == 2 || rank == 0)
			synth_call(s, 1, "cudaMalloc", .time_ns = at(number[rank ? 3 : 4]), .bytes = 20ull << 30, .device = 0,
				   .result = 2);
		synth_close(s, SYNTH_COMPLETED);
	}
	return 0;
}
