/* SPDX-License-Identifier: MIT */
#include "agent/pages.h"

#include <sys/mman.h>

void *sl_pages_map(size_t bytes)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}
