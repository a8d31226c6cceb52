/* SPDX-License-Identifier: MIT */
#include "analyzer/report/tensor.h"

#include <stdio.h>

static const struct {
	const char *name;
	unsigned bytes;
} types[] = {
#define TYPE(number, name, bytes) [(number) + 1] = {name, bytes},
#include "common/torch_types.def"
#undef TYPE
};

const char *sl_tensor_type(const struct sl_tensor *tensor)
{
	return tensor->type < SL_COUNT(types) ? types[tensor->type].name : NULL;
}

unsigned sl_tensor_element(const struct sl_tensor *tensor)
{
	return tensor->type < SL_COUNT(types) ? types[tensor->type].bytes : 0;
}

const char *sl_tensor_words(char *out, size_t size, const struct sl_process *process, uint32_t tensor)
{
	const struct sl_tensor *what = tensor ? &process->model->tensors.item[tensor] : NULL;
	const char *shape = what && what->shape ? sl_defs_text(process->model->defs, what->shape) : NULL;

	*out = 0;
	if (shape && sl_tensor_type(what))
		snprintf(out, size, ", %s %s", shape, sl_tensor_type(what));
	return out;
}
