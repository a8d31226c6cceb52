/* SPDX-License-Identifier: MIT */
/* A try that failed, whose memory the exception still held when the next one failed too. */
#include "analyzer/analyses/oom_causes.h"

#include <string.h>

#include "analyzer/report/place.h"
#include "analyzer/report/roles.h"

/* The last error of another request, if the program caught it, else NULL. */
static const struct sl_oom *caught_before(const struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_oom *first = oom;

	while (first > process->model->ooms.item && first->group == oom->group)
		first--;
	return first->group == oom->group || first->recovered == 1 || first->device != oom->device ||
			       (first->thread != oom->thread && !(first->reported_by_torch && oom->reported_by_torch))
		       ? NULL
		       : first; /* autograd fails on a thread of its own */
}

/*
 * Bytes that the line of a failed try made and that are still held, although the program has left that line.  Activations count,
 * and places that gave back half of their blocks at other times.
 */
static uint64_t unreturned_at(struct sl_process *process, const struct sl_oom *oom, const struct sl_chain *tried, unsigned outer)
{
	uint64_t bytes[2] = {0};
	struct sl_chain other;

	for (unsigned i = 0; i < oom->owner_count; i++) {
		const struct sl_site *site = &process->model->sites.item[oom->owners[i].site];

		sl_place_take(&other, process, site->stack);
		if (sl_place_shared(tried, &other) > outer &&
		    (2 * oom->owners[i].blocks <= site->total_blocks || sl_roles_of(process, site) == SL_ROLE_ACTIVATIONS))
			bytes[site->kind == SL_KIND_block] += oom->owners[i].bytes;
	}
	return bytes[oom->torch.used]; /* PyTorch's segments stay for other tensors */
}

bool sl_oom_causes_retry(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_oom *first = caught_before(process, oom);
	const struct sl_stack_frame *try, *next;
	struct sl_chain tried, here;
	unsigned outer;
	uint64_t kept;

	if (!first)
		return false;
	sl_place_take(&tried, process, first->stack);
	sl_place_take(&here, process, oom->stack);
	outer = sl_place_shared(&tried, &here);
	if (outer == tried.count || outer == here.count)
		return false;
	try = tried.frame[tried.count - 1 - outer];
	next = here.frame[here.count - 1 - outer];
	if (!try->function || !next->function || strcmp(try->function, next->function) != 0)
		return false; /* a handler is in the function of its try */
	kept = unreturned_at(process, oom, &tried, outer);
	if (kept < sl_oom_causes_missing(oom))
		return false;
	*story = (struct sl_story){.kind = SL_STORY_RETRY, .stack = first->stack, .bytes = kept};
	return true;
}
