/* SPDX-License-Identifier: MIT */
#include "analyzer/report/operator.h"

#include <stdio.h>
#include <string.h>

static const struct sl_operator operators[] = {
#define OPERATOR(name, makes, why, change) {name, makes, why, change},
#define MAPS(name, makes, why, change)	   {name, makes, why, change, .maps = true},
#define JOIN(name)                                                                                                                 \
	{name, "all combinations of two operands", "broadcasting writes a number for each combination of their elements",          \
	 "compute it in pieces of one operand, under torch.utils.checkpoint where it trains, or distances by torch.cdist,",        \
	 .joins = true},
#include "analyzer/report/operators.def"
#undef OPERATOR
#undef MAPS
#undef JOIN
};

/* True: the function is one of the name: "DynamicCache.update" is `update` where Python tells no class (before 3.11). */
static bool is_function(const char *function, const char *name)
{
	const char *point = strrchr(function, '.');

	return !strcmp(function, name) || (point && !strcmp(point + 1, name));
}

/* True: at::_ops::NAME::call, or the node of autograd of that name. */
static bool is_operator(const char *function, const char *name)
{
	char part[128];

	snprintf(part, sizeof(part), "at::_ops::%s::", name);
	if (strstr(function, part))
		return true;
	snprintf(part, sizeof(part), "::generated::%s::", name);
	return strstr(function, part) || (!strcmp(name, "cached_cast") && strstr(function, "autocast::cached_cast("));
}

const struct sl_operator *sl_operator_of(struct sl_process *process, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, stack), inner = 0;

	while (inner < count && !sl_stacks_is_own(&frames[inner]))
		inner++;
	/* a dry run computes an operator in Python, behind whose frames the native ones stand one loop too far outside */
	while (!process->model->recording.numbers_are_computed && inner + 1 < count && !frames[inner + 1].python)
		inner++;
	for (size_t row = 0; row < SL_COUNT(operators); row++)
		for (unsigned i = 0; i < inner; i++) {
			const char *function = frames[i].function;

			if (function && (frames[i].python ? is_function(function, operators[row].name)
							  : is_operator(function, operators[row].name)))
				return &operators[row];
		}
	return NULL;
}
