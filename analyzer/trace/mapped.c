/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/parts.h"

#include "analyzer/base/search.h"

/* The first place that ends behind the address. */
static size_t mapping_at(const struct sl_mapped *mapped, uint64_t address)
{
	return SL_FIRST(i, mapped->list.count, mapped->list.item[i].end > address);
}

bool sl_mapped_taken(const struct sl_mapped *mapped, const struct sl_mapped_range *place)
{
	for (size_t i = mapping_at(mapped, place->begin); i < mapped->list.count && mapped->list.item[i].begin < place->end; i++)
		if (mapped->list.item[i].object != place->object)
			return true;
	return false;
}

void sl_mapped_put(struct sl_mapped *mapped, const struct sl_mapped_range *place)
{
	size_t first = mapping_at(mapped, place->begin), next = first, count = 0;
	struct sl_mapped_range kept[3];

	if (mapped->list.count + 2 > SL_MAPPED_MAX)
		return;
	for (; next < mapped->list.count && mapped->list.item[next].begin < place->end; next++)
		;
	if (next > first && mapped->list.item[first].begin < place->begin) {
		kept[count] = mapped->list.item[first];
		kept[count++].end = place->begin;
	}
	kept[count++] = *place;
	if (next > first && mapped->list.item[next - 1].end > place->end) {
		kept[count] = mapped->list.item[next - 1];
		kept[count++].begin = place->end;
	}
	SL_ROOM(&mapped->list);
	mapped->list.count++;
	SL_ROOM(&mapped->list);
	mapped->list.count--;
	memmove(&mapped->list.item[first + count], &mapped->list.item[next], (mapped->list.count - next) * sizeof(*kept));
	memcpy(&mapped->list.item[first], kept, count * sizeof(*kept));
	mapped->list.count += count - (next - first);
}

uint64_t sl_mapped_address(const struct sl_mapped *mapped, uint64_t address)
{
	size_t at = mapping_at(mapped, address);

	return at < mapped->list.count && mapped->list.item[at].begin <= address
		       ? address | (uint64_t)mapped->list.item[at].moved << SL_MAPPED_BITS
		       : address;
}
