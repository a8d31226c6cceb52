/* SPDX-License-Identifier: MIT */
/* python_layout.c, but with STORMLOG_TEST_MINOR the tables of another minor version than the running one. */
#include <stdlib.h>

#define sl_python_layout_find right_layout
#include "agent/stacks/python_layout.c"
#undef sl_python_layout_find

bool sl_python_layout_find(struct sl_python_layout *layout, unsigned minor, const void *runtime);

bool sl_python_layout_find(struct sl_python_layout *layout, unsigned minor, const void *runtime)
{
	const char *other = getenv("STORMLOG_TEST_MINOR");
	static uint64_t table[128];

	if (other)
		minor = (unsigned)atoi(other);
	memcpy(table, runtime, sizeof(table));
	table[1] = 3u << 24 | minor << 16;
	return right_layout(layout, minor, table);
}
