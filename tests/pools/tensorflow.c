/* SPDX-License-Identifier: MIT */
/* A model as TensorFlow's allocator sees it: weights stay allocated, activations do not. */
#include <stddef.h>

#define MIB ((size_t)1 << 20)

struct table {
	void *(*allocate)(void *, size_t, size_t, const void *);
	void (*deallocate)(void *, void *);
};
extern const struct table bfc_table;

int main(void)
{
	void *activations[4];

	for (int layer = 0; layer < 10; layer++)
		bfc_table.allocate(NULL, 256, 4 * MIB - 100, NULL);
	for (int i = 0; i < 4; i++)
		activations[i] = bfc_table.allocate(NULL, 256, 5 * MIB + MIB / 2, NULL);
	for (int i = 0; i < 4; i++)
		bfc_table.deallocate(NULL, activations[i]);
	return 0;
}
