/* SPDX-License-Identifier: MIT */
/* A hash table of answers by request. The key holds a serial number, so each put is an insert. */
#include "../../apps/gpu.h"

#define BUCKETS 64

struct entry {
	struct entry *next;
	unsigned long key;
	void *value;
};
struct table {
	struct entry *bucket[BUCKETS];
};

static void *xmalloc(size_t bytes)
{
	void *p = malloc(bytes);
	CHECK(p);
	return p;
}

static void *device_dup(size_t bytes)
{
	void *p;
	OK(cudaMalloc(&p, bytes));
	OK(cudaMemset(p, 0, bytes));
	return p;
}

static struct entry *find(struct table *table, unsigned long key)
{
	for (struct entry *e = table->bucket[key % BUCKETS]; e; e = e->next)
		if (e->key == key)
			return e;
	return NULL;
}

static void put(struct table *table, unsigned long key, size_t bytes)
{
	struct entry *e = find(table, key);
	if (!e) {
		e = xmalloc(sizeof *e);
		*e = (struct entry){table->bucket[key % BUCKETS], key, device_dup(bytes)}; /* CULPRIT */
		table->bucket[key % BUCKETS] = e;
	}
}

static void answer(struct table *table, unsigned long serial)
{
	void *query = device_dup(9000 + serial % 31 * 64);
	put(table, serial << 8 | serial % 10, 36864); /* CULPRIT */
	OK(cudaFree(query));
}

int main(void)
{
	static struct table table;
	void *index = device_dup(48 * MB);
	for (unsigned long serial = 0; serial < 900; serial++)
		answer(&table, serial);
	for (int i = 0; i < BUCKETS; i++)
		for (struct entry *e = table.bucket[i], *next; e; e = next) {
			next = e->next;
			OK(cudaFree(e->value));
			free(e);
		}
	OK(cudaFree(index));
	return 0;
}
