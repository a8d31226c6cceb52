/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/order.h"

static inline bool before(const struct sl_fit_order *order, const struct sl_fit_block *a, const struct sl_fit_block *b)
{
	if (a->stream != b->stream)
		return a->stream < b->stream;
	if (a->bytes != b->bytes && !order->by_address)
		return a->bytes < b->bytes;
	if (a->age != b->age && !order->by_address)
		return a->age < b->age;
	return a->address < b->address;
}

void sl_fit_order_add(struct sl_fit_order *order, struct sl_fit_block *block)
{
	struct sl_fit_block **at = &order->root, **less = &block->less, **more = &block->more, *rest;

	while (*at && (*at)->priority >= block->priority)
		at = before(order, block, *at) ? &(*at)->less : &(*at)->more;
	rest = *at;
	*at = block;
	while (rest) {
		if (before(order, rest, block)) {
			*less = rest;
			less = &rest->more;
			rest = rest->more;
		} else {
			*more = rest;
			more = &rest->less;
			rest = rest->less;
		}
	}
	*less = *more = NULL;
}

void sl_fit_order_remove(struct sl_fit_order *order, struct sl_fit_block *block)
{
	struct sl_fit_block **at = &order->root, *less = block->less, *more = block->more;

	while (*at != block)
		at = before(order, block, *at) ? &(*at)->less : &(*at)->more;
	while (less && more) {
		if (less->priority >= more->priority) {
			*at = less;
			at = &less->more;
			less = less->more;
		} else {
			*at = more;
			at = &more->less;
			more = more->less;
		}
	}
	*at = less ? less : more;
}

struct sl_fit_block *sl_fit_order_from(const struct sl_fit_order *order, const struct sl_fit_block *key)
{
	struct sl_fit_block *found = NULL, *at = order->root;

	while (at) {
		if (before(order, at, key)) {
			at = at->more;
		} else {
			found = at;
			at = at->less;
		}
	}
	return found;
}

struct sl_fit_block *sl_fit_order_after(const struct sl_fit_order *order, const struct sl_fit_block *block)
{
	struct sl_fit_block *found = NULL, *at = order->root;

	while (at) {
		if (before(order, block, at)) {
			found = at;
			at = at->less;
		} else {
			at = at->more;
		}
	}
	return found;
}

struct sl_fit_block *sl_fit_order_before(const struct sl_fit_order *order, const struct sl_fit_block *block)
{
	struct sl_fit_block *found = NULL, *at = order->root;

	while (at) {
		if (before(order, at, block)) {
			found = at;
			at = at->more;
		} else {
			at = at->less;
		}
	}
	return found;
}

struct sl_fit_block *sl_fit_order_first(const struct sl_fit_order *order)
{
	struct sl_fit_block *at = order->root;

	while (at && at->less)
		at = at->less;
	return at;
}
