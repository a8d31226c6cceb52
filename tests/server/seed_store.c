/* SPDX-License-Identifier: MIT */
/*
 * seed_store CATALOGUE RUNS [SEED]: makes a catalogue of RUNS runs in 40 projects, 20 places a run; the same for the same seed.
 * In project-0 "grows" holds 2 % more from run 0.8 * RUNS on.
 */
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/catalogue/catalogue.h"

#define PROJECTS 40
#define PLACES	 20

static uint64_t state;

static uint64_t dice(uint64_t sides)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % sides;
}

static const char *text(struct sl_card *card, const char *format, unsigned long long a, unsigned long long b)
{
	char buffer[256];

	snprintf(buffer, sizeof(buffer), format, a, b);
	return sl_card_keep(card, buffer);
}

static void fill(struct sl_card *card, unsigned run, unsigned runs)
{
	unsigned project = dice(4) ? (unsigned)dice(PROJECTS) : 0;

	card->identity = text(card, "%064llx%.0llx", run + 1, 0);
	card->source = card->identity;
	card->run_id = text(card, "run-%llu", run, 0);
	card->project = text(card, "project-%llu", project, 0);
	card->tag = text(card, "train_%llu.py", dice(200), 0);
	card->command = text(card, "python train_%llu.py --lr 0.%llu", dice(200), dice(1000));
	card->host = text(card, "node-%llu", dice(64), 0);
	card->status = dice(10) ? "completed" : "killed";
	card->commit_id = text(card, "%016llx%08llx", dice(1ull << 31), dice(1ull << 31));
	card->branch = dice(3) ? "main" : text(card, "topic-%llu", dice(500), 0);
	card->started_ns = 1790000000000000000ll + (int64_t)run * 600000000000ll;
	card->ended_ns = card->started_ns + (int64_t)dice(1ull << 31) * 100;
	card->ranks = 1 << dice(4);
	card->processes = card->ranks;
	card->devices = card->ranks;
	card->peak_bytes = (int64_t)(20ull + project) << 30;
	card->peak_bytes += (int64_t)dice((uint64_t)card->peak_bytes / 200);
	card->ooms = !dice(30);
	for (unsigned i = 0; i < PLACES; i++) {
		unsigned long long place = dice(PLACES) * dice(PLACES);

		sl_card_add_metric(card, "stack", text(card, "key%llu.%llu", project, place),
				   text(card, "model_%llu.py:%llu forward", place, project), (int64_t)(dice(1 << 20) << 10));
		sl_card_add_name(card, SL_NAME_FUNCTION, text(card, "forward_%llu_%llu", project, place));
		sl_card_add_name(card, SL_NAME_FILE, text(card, "model_%llu.py", place, 0));
	}
	if (!project)
		sl_card_add_metric(card, "stack", "grows", "grows.py:1 grow",
				   (int64_t)((run < runs / 5 * 4 ? 1000 : 1020) * ((1u << 20) + dice(1 << 10))));
	sl_card_add_name(card, SL_NAME_LIBRARY, dice(2) ? "libtorch_cuda.so" : "libcublas.so");
	sl_card_add_name(card, SL_NAME_LABEL, text(card, "step_%llu", dice(30), 0));
}

int main(int argc, char **argv)
{
	char why[SL_STORE_WHY];
	struct sl_store *store = argc > 2 ? sl_store_open(argv[1], true, why) : NULL;
	unsigned runs = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	int64_t number;

	state = argc > 3 ? strtoull(argv[3], NULL, 10) : 25;
	if (!store)
		return 1;
	for (unsigned run = 0; run < runs; run++) {
		struct sl_card card;

		if (run % 500 == 0 && (run == 0 ? !sl_store_begin(store) : !sl_store_commit(store) || !sl_store_begin(store)))
			return 1;
		sl_card_init(&card);
		fill(&card, run, runs);
		if (!sl_store_put(store, &card, &number)) {
			fprintf(stderr, "%s\n", sl_store_why(store));
			return 1;
		}
		sl_card_free(&card);
	}
	if (!sl_store_commit(store))
		return 1;
	sl_store_close(store);
	return 0;
}
