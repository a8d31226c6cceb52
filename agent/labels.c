/* SPDX-License-Identifier: MIT */
#include "agent/labels.h"

uint32_t sl_labels_current(void)
{
	return 0;
}

uint32_t sl_labels_borrowed_stack(void)
{
	return 0;
}

void sl_labels_construct(void)
{
}
