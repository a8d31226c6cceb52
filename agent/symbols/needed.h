/* SPDX-License-Identifier: MIT */
/*
 * Which objects an object needs, by the DT_NEEDED of all of them: asked only where several provide the same name.
 * For use inside dl_iterate_phdr, so that nothing comes or goes.  Objects are numbered in link order, the program is 0.
 */
#ifndef AGENT_SYMBOLS_NEEDED_H
#define AGENT_SYMBOLS_NEEDED_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_closure_node;

struct sl_closure {
	struct sl_closure_node *nodes;
	unsigned count;
	uint32_t *queue; /* those reached, in the loader's order: breadth first */
	unsigned queued;
};

/* All loaded objects, none reached.  False: no memory (pages of its own, given back by close). */
bool sl_closure_open(struct sl_closure *closure);
void sl_closure_close(struct sl_closure *closure);

/* Reach these instead of what was reached before: an object and all it needs; what was loaded at start. */
void sl_closure_of(struct sl_closure *closure, unsigned object);
void sl_closure_startup(struct sl_closure *closure, unsigned own_order);

bool sl_closure_has(const struct sl_closure *closure, unsigned object);

/* What the walks of resolve.c and needed.c share. */
struct sl_elf_object;
bool sl_closure_read(struct sl_elf_object *object, const struct dl_phdr_info *info);
const char *sl_closure_base_name(const char *path);

#endif
