/* SPDX-License-Identifier: MIT */
/* What PyTorch's blocks are: the type and shape of their tensor, the module and the operator in which they were made. */
#include "analyzer/base/memory.h"
#include "analyzer/model/counts/between.h"
#include "analyzer/model/replay/replay.h"

#define TYPES 64 /* of which PyTorch has 46 */

void sl_tensors_told(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	struct sl_tensor tensor = {.shape = (uint32_t)event->label,
				   .module = (uint32_t)event->extra,
				   .native = (uint32_t)event->bytes,
				   .type = event->extra2 < TYPES ? (uint8_t)event->extra2 : 0};
	uint32_t place = sl_idmap_claim(&model->tensor_places, (uint64_t)tensor.shape << 32 | tensor.module, model->tensor_count),
		 at;

	if (!model->tensors.count)
		*SL_PUSH(&model->tensors) = (struct sl_tensor){0};
	model->tensor_count += place == model->tensor_count;
	if (place >= UINT32_MAX / TYPES)
		return;
	at = sl_idmap_claim(&model->tensor_ids, (uint64_t)tensor.native << 32 | (place * TYPES + tensor.type),
			    (uint32_t)model->tensors.count);
	if (at == model->tensors.count)
		*SL_PUSH(&model->tensors) = tensor;
	sl_ledger_thread(model, item->thread)->tensor = at;
}

uint32_t sl_tensors_take(struct sl_model *model, uint32_t thread)
{
	struct sl_thread_state *state = model->tensors.count ? sl_ledger_thread(model, thread) : NULL;
	uint32_t tensor = state ? state->tensor : 0;

	if (state)
		state->tensor = 0;
	return tensor;
}

/* An owner gets the tensor of its largest block, and what it has in that type. */
void sl_tensors_of_owners(const struct sl_model *model, struct sl_owner *owners, size_t count)
{
	uint64_t *largest = model->tensors.count ? sl_memory_must(calloc(count + 1, sizeof(*largest))) : NULL;

	for (unsigned pass = 0; largest && pass < 2; pass++)
		SL_TABLE_EACH(&model->blocks, live)
		{
			const struct sl_site *site = &model->sites.item[live->site];
			size_t at = 2 * site->track + site->pooled;

			if (at >= count || !owners[at].bytes || !live->owner)
				continue;
			if (!pass && live->bytes > largest[at]) {
				largest[at] = live->bytes;
				owners[at].tensor = (uint32_t)live->owner;
			}
			if (pass && model->tensors.item[live->owner].type == model->tensors.item[owners[at].tensor].type)
				owners[at].typed_bytes += live->bytes;
		}
	free(largest);
}

struct since {
	struct sl_model *model;
	uint64_t ns;
};

static void add(void *context, uint64_t address, uint32_t site, uint64_t bytes, uint64_t born_ns)
{
	const struct since *since = context;
	struct sl_model *model = since->model;
	const struct sl_live *live =
		address && model->sites.item[site].kind == SL_KIND_block ? sl_table_find(&model->blocks, address) : NULL;

	if (!live || !live->owner || (since->ns && born_ns <= since->ns))
		return;
	sl_named_add(model, (uint32_t)live->owner, site, address, bytes);
	model->born[site].named_bytes += bytes;
	model->born[site].named_blocks++;
}

void sl_tensors_born(struct sl_model *model, uint64_t since_ns)
{
	sl_between_each(model, &(struct since){model, since_ns}, add);
}
