/* SPDX-License-Identifier: MIT */
/* The machine of a dry run: one device or as many as CUDA programs of the job may see, each of them the card. */
#include "tests/sim/sim.h"

#include "dry/card.h"
#include "dry/machine.h"

#include <stdlib.h>
#include <string.h>

struct sl_dry_card sl_dry_card;

void sim_settings_read(void)
{
	struct sim_config *c = &sim_config;
	const char *loading = getenv("CUDA_MODULE_LOADING");
	const char *devices = getenv("STORMLOG_DRY_DEVICES");

	c->off = !sl_dry_card_here() || sl_dry_card_read(&sl_dry_card, getenv(SL_DRY_CARD));
	c->devices = c->off ? 0 : devices ? atoi(devices) : 1;
	if (c->devices > SIM_MAX_DEVICES)
		c->devices = SIM_MAX_DEVICES;
	c->vram = (uint64_t)sl_dry_card.memory;
	c->ctx_bytes = (uint64_t)(sl_dry_card.context_low + sl_dry_card.kernels_low);
	c->granularity = 2 << 20;
	c->pool_step = 32 << 20;
	c->pinned_limit = UINT64_MAX;
	c->driver_version = 13000;
	c->lazy_modules = !loading || strcmp(loading, "EAGER");
}

const char *sim_settings_folder(void)
{
	return getenv(SL_DRY_FOLDER);
}
