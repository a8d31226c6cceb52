/* SPDX-License-Identifier: MIT */
#include "analyzer/base/text_join.h"

#include <stdio.h>

#include "common/fnv.h"

#define NUMBER_BYTES 21 /* of "...#0123456789abcdef" */

struct sl_text_join sl_text_join_begin(char *buffer, size_t size)
{
	return (struct sl_text_join){.text = buffer, .size = size, .number = SL_FNV_START};
}

void sl_text_join_add(struct sl_text_join *joined, const char *text, size_t length)
{
	size_t room = joined->used < joined->size ? joined->size - joined->used : 0;

	joined->number = sl_fnv_bytes(joined->number, text, length);
	memcpy(joined->text + joined->size - room, text, length < room ? length : room);
	joined->used += length;
}

void sl_text_join_add_text(struct sl_text_join *joined, const char *text)
{
	sl_text_join_add(joined, text, strlen(text));
}

void sl_text_join_end(struct sl_text_join *joined)
{
	if (joined->used < joined->size) {
		joined->text[joined->used] = 0;
		return;
	}
	joined->text[joined->size - 1] = 0;
	if (joined->size > NUMBER_BYTES)
		snprintf(joined->text + joined->size - NUMBER_BYTES, NUMBER_BYTES, "...#%016llx",
			 (unsigned long long)joined->number);
}
