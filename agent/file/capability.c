/* SPDX-License-Identifier: MIT */
#include "agent/file/file.h"

void sl_capability_write(const char *name, const char *value)
{
	uint8_t bytes[320]; /* no value is longer than 224 bytes */
	struct sl_definition map = sl_definition_begin(bytes, sizeof(bytes), "capability");

	sl_definition_text(&map, "name", name);
	sl_definition_text(&map, "value", value);
	sl_define_publish(&map);
}
