/* SPDX-License-Identifier: MIT */
/*
 * Which objects an object needs, by the DT_NEEDED of all of them: asked only where several provide the same name.
 * For use inside dl_iterate_phdr, so that nothing comes or goes.  Objects are numbered in link order, the program is 0.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_needed_node;

struct sl_needed {
	struct sl_needed_node *nodes;
	unsigned count;
	uint32_t *queue; /* objects that were reached, in the loader's order: breadth first */
	unsigned queued;
};

/* Lists all loaded objects, none of them reached.  False: no memory (it has pages of its own, which close gives back). */
bool sl_needed_open(struct sl_needed *needed);
void sl_needed_close(struct sl_needed *needed);

/* Replaces what was reached before: by an object and all it needs, or by what was loaded at start. */
void sl_needed_by(struct sl_needed *needed, unsigned object);
void sl_needed_startup(struct sl_needed *needed, unsigned own_order);

bool sl_needed_has(const struct sl_needed *needed, unsigned object);

/* What the walks of resolve.c and needed.c share. */
struct sl_elf_object;
bool sl_needed_read(struct sl_elf_object *object, const struct dl_phdr_info *info);
const char *sl_needed_base_name(const char *path);
