/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/lacks.h"

#include "analyzer/symbols/symbols.h"

bool sl_fit_lacks_outside(const struct sl_model *model, struct sl_stack stack)
{
	const struct sl_module *module = sl_defs_module_at(model->defs, stack.caller);

	return module && !sl_model_is_cache(sl_stacks_library(model->defs, model->header, stack));
}

bool sl_fit_lacks_device(const struct sl_oom *oom, int device)
{
	return oom->device == device && oom->scope != SL_SCOPE_HOST && oom->scope != SL_SCOPE_ADDRESS_SPACE;
}

/* The most that was free and yet not enough.  A pool's own limit, or an error that was asked for, comes whatever is free. */
static uint64_t too_little(const struct sl_oom *oom)
{
	uint64_t least = oom->asked_bytes ? oom->asked_bytes - 1 : 0;

	if (oom->of_framework || sl_oom_made_to_fail(oom))
		return 0;
	return oom->free_bytes != SL_UNKNOWN && oom->free_bytes > least ? oom->free_bytes : least;
}

void sl_fit_lacks_find(struct sl_fit_lacks *lacks, const struct sl_model *model, int device)
{
	*lacks = (struct sl_fit_lacks){0};
	for (size_t i = 0; i < model->ooms.count; i++) {
		const struct sl_oom *oom = &model->ooms.item[i];

		if (sl_fit_lacks_device(oom, device) &&
		    (oom->of_framework || (!oom->reported_by_torch && sl_fit_lacks_outside(model, oom->stack))))
			*SL_PUSH(&lacks->list) = (struct sl_fit_lack){.time_ns = oom->time_ns,
								      .bytes = too_little(oom),
								      .python = oom->stack.python,
								      .got_over = sl_oom_got_over(oom)};
	}
}
