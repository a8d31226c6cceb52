/* SPDX-License-Identifier: MIT */
#include "agent/file/capability.h"

#include "agent/file/define.h"
#include "common/pack.h"

void sl_capability(const char *name, const char *value)
{
	uint8_t map[512];
	struct sl_pack pack = sl_pack_begin(map, sizeof(map));

	sl_pack_map(&pack, 3);
	sl_pack_pair_text(&pack, "def", "capability");
	sl_pack_pair_text(&pack, "name", name);
	sl_pack_pair_text(&pack, "value", value);
	if (!pack.failed)
		sl_define_publish(map, pack.used);
}
