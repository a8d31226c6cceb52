/* SPDX-License-Identifier: MIT */
/* Memory by mmap, since the program's malloc must not be called. */
#ifndef AGENT_PAGES_H
#define AGENT_PAGES_H

#include <stddef.h>

/* Zeroed pages that live as long as the process, from mmap; NULL if refused.  Safe on the path of a call. */
void *sl_pages_map(size_t bytes);

#endif
