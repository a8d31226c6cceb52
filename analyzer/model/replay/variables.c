/* SPDX-License-Identifier: MIT */
/* Variables that hold blocks.  Python looks at all blocks now and then, and tells for each the variable that leads to it. */
#include "analyzer/model/replay/replay.h"

void sl_variables_end(struct sl_model *model)
{
	for (size_t i = 0; model->look_bytes && i < model->variables.count; i++) {
		struct sl_variable *one = &model->variables.item[i];

		if (one->look != model->look || one->bytes < one->most_bytes)
			continue;
		one->most_blocks = one->blocks;
		one->most_bytes = one->bytes;
		one->most_seen = one->seen;
	}
	model->look_bytes = 0;
}

void sl_variables_apply(struct sl_model *model, const struct sl_event *event)
{
	const struct sl_live *live = sl_memory_names_block(model, event->address, event->bytes);
	struct sl_variable *one;
	uint32_t at;

	if (!live || !event->label)
		return; /* memory whose allocation was not recorded */
	if (model->look != event->extra)
		sl_variables_end(model);
	model->look = event->extra;
	at = sl_idmap_claim(&model->variable_ids, event->label << 32 | live->site, model->variables.count);
	if (at == model->variables.count)
		*SL_PUSH(&model->variables) = (struct sl_variable){.text = (uint32_t)event->label, .site = live->site};
	one = &model->variables.item[at];
	if (one->look != event->extra)
		one->blocks = one->bytes = one->seen = 0;
	one->look = event->extra;
	one->blocks++;
	one->bytes += live->bytes;
	one->seen += event->bytes < live->bytes ? event->bytes : live->bytes;
	model->look_bytes += live->bytes;
	if (model->look_bytes >= model->told_bytes) {
		model->told_bytes = model->look_bytes;
		model->told_ns = event->time_ns;
	}
}
