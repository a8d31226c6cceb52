/* SPDX-License-Identifier: MIT */
#include "analyzer/report/refuser.h"

#include <string.h>

#include "analyzer/model/state/units.h"

uint64_t sl_refuser_own_limit(const struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_hook *hook = sl_header_hook(process->model->header, oom->api);
	uint64_t limit;
	double part;

	memcpy(&part, &oom->torch.fraction_bits, sizeof(part));
	if (!hook || hook->verb != SL_VERB_BLOCK_OOM || oom->of_framework)
		return 0;
	if (oom->total_bytes == SL_UNKNOWN)
		return sl_trace_is_whole(process->trace) ? SL_UNKNOWN : 0; /* a call of the driver that failed would be seen */
	if (!oom->torch.fraction_bits)
		return oom->asked_bytes <= oom->total_bytes && oom->free_bytes != SL_UNKNOWN &&
				       oom->free_bytes >= sl_units_taken(oom)
			       ? SL_UNKNOWN
			       : 0;
	limit = (uint64_t)((double)oom->total_bytes * part);
	return part > 0 && part < 1 && oom->torch.reserved_bytes + oom->asked_bytes > limit ? limit : 0;
}

enum sl_refuser sl_refuser_of(const struct sl_process *process, const struct sl_oom *oom)
{
	bool roomy = oom->free_bytes == SL_UNKNOWN || oom->free_bytes >= sl_units_taken(oom);

	if (sl_oom_made_to_fail(oom))
		return SL_REFUSER_INJECTION;
	if (oom->scope == SL_SCOPE_HOST || oom->scope == SL_SCOPE_ADDRESS_SPACE)
		return SL_REFUSER_HOST;
	if (oom->of_framework || (oom->pool_most_bytes && roomy))
		return SL_REFUSER_POOL;
	if (sl_refuser_own_limit(process, oom))
		return SL_REFUSER_TORCH;
	return oom->injected ? SL_REFUSER_LIMIT : SL_REFUSER_CARD;
}

const char *sl_refuser_words(enum sl_refuser refuser)
{
	static const char *const words[] = {
		[SL_REFUSER_TORCH] = "PyTorch's own limit (set_per_process_memory_fraction) refused, not the card",
		[SL_REFUSER_POOL] = "a pool's own maximum refused, not the card",
		[SL_REFUSER_INJECTION] = "--inject-oom made a call fail, and the card had room",
		[SL_REFUSER_HOST] = "the host refused, not the card",
	};

	return refuser < SL_COUNT(words) ? words[refuser] : NULL;
}
