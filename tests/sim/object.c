/* SPDX-License-Identifier: MIT */
/* Everything that has an address or a handle, found by any address inside it. */
#include "sim.h"

#include <search.h>
#include <stdlib.h>

/* Reservations of address space contain mappings, so they have a tree of their own. */
static void *trees[2];

static void **tree_of(enum sim_type type)
{
	return &trees[type == SIM_T_RESERVATION];
}

/* Ranges that overlap are equal, so a search for one byte finds the object around it. */
static int compare(const void *a, const void *b)
{
	const struct sim_object *x = a, *y = b;
	if (x->key + x->span <= y->key)
		return -1;
	return x->key >= y->key + y->span;
}

void sim_object_insert(struct sim_object *object)
{
	tsearch(object, tree_of(object->type), compare);
	if (!object->ctx)
		return;
	object->next = object->ctx->owned;
	object->link = &object->ctx->owned;
	if (object->next)
		object->next->link = &object->next;
	object->ctx->owned = object;
}

void sim_object_remove(struct sim_object *object)
{
	tdelete(object, tree_of(object->type), compare);
	if (!object->link)
		return;
	*object->link = object->next;
	if (object->next)
		object->next->link = object->link;
	object->link = NULL;
}

static void drop_plain(struct sim_object *object, struct sim_call *call)
{
	sim_object_remove(object);
	free(object);
}

void *sim_object_new(size_t size, enum sim_type type, struct sim_ctx *ctx)
{
	struct sim_object *object = calloc(1, size);
	if (!object)
		return NULL;
	object->key = (uintptr_t)object;
	object->span = 1;
	object->type = type;
	object->ctx = ctx;
	object->drop = drop_plain;
	sim_object_insert(object);
	return object;
}

void *sim_object_get(uint64_t key, enum sim_type type)
{
	struct sim_object probe = {.key = key, .span = 1, .type = type};
	void *found = key ? tfind(&probe, tree_of(type), compare) : NULL;
	struct sim_object *object = found ? *(struct sim_object **)found : NULL;
	return object && (type == SIM_T_ANY || object->type == type) ? object : NULL;
}

static struct {
	enum sim_type type;
	void (*visit)(struct sim_object *, void *);
	void *arg;
} walk;

static void walk_one(const void *node, VISIT order, int depth)
{
	struct sim_object *object = *(struct sim_object *const *)node;
	if ((order == postorder || order == leaf) && object->type == walk.type)
		walk.visit(object, walk.arg);
}

/* The visitor may not insert or remove. */
void sim_object_each(enum sim_type type, void (*visit)(struct sim_object *, void *), void *arg)
{
	walk.type = type;
	walk.visit = visit;
	walk.arg = arg;
	twalk(*tree_of(type), walk_one);
}
