/* SPDX-License-Identifier: MIT */
#include "analyzer/model/model.h"

#include <string.h>

bool sl_model_is_cache(const char *library)
{
	return strstr(library, "c10_") || !strncmp(library, SL_POOL_OF, strlen(SL_POOL_OF));
}

const char *sl_model_kept(const struct sl_model *model, int device)
{
	const struct sl_device_state *state = model->devices[device + 1];

	return sl_model_rest_name(state ? &state->torch : NULL);
}

bool sl_model_in_use(const struct sl_model *model, const struct sl_site *site)
{
	const struct sl_device_state *device = model->devices[site->device + 1];

	if (site->kind == SL_KIND_block)
		return true;
	return sl_model_is_on_device(site) && !(device && device->torch.used && sl_model_is_cache(sl_model_library(model, site)));
}

static bool is_saved(const struct sl_model *model, const struct sl_site *site)
{
	const struct sl_device_state *device = model->devices[site->device + 1];

	return !model->site_course || (device && model->site_course[site - model->sites.item].epoch == device->epoch);
}

uint64_t sl_model_site_at_peak(const struct sl_model *model, const struct sl_site *site)
{
	return is_saved(model, site) ? site->at_peak_bytes : site->live_bytes;
}

uint64_t sl_model_blocks_at_peak(const struct sl_model *model, const struct sl_site *site)
{
	return is_saved(model, site) ? site->at_peak_blocks : site->live_blocks;
}
