/* SPDX-License-Identifier: MIT */
#include "common/text.h"

/* Edit distance, swaps of neighbours counted as one. */
static unsigned distance(const char *a, const char *b)
{
	unsigned rows[3][SL_NEAREST_ANY + 1];
	size_t width = strlen(b);

	if (width > SL_NEAREST_ANY - 1)
		return SL_NEAREST_ANY;
	for (unsigned j = 0; j <= width; j++)
		rows[0][j] = j;
	for (unsigned i = 1; i <= strlen(a); i++) {
		unsigned *now = rows[i % 3], *before = rows[(i + 2) % 3], *swap = rows[(i + 1) % 3];

		now[0] = i;
		for (unsigned j = 1; j <= width; j++) {
			now[j] = before[j - 1] + (a[i - 1] != b[j - 1]);
			now[j] = before[j] + 1 < now[j] ? before[j] + 1 : now[j];
			now[j] = now[j - 1] + 1 < now[j] ? now[j - 1] + 1 : now[j];
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && swap[j - 2] + 1 < now[j])
				now[j] = swap[j - 2] + 1;
		}
	}
	return rows[strlen(a) % 3][width];
}

/* Half of the letters must agree: of three letters, two others make another word. */
void sl_nearest_consider(struct sl_nearest *nearest, const char *name)
{
	unsigned d = *name ? distance(nearest->wanted, name) : SL_NEAREST_ANY;
	size_t letters = strlen(name + strspn(name, "-")), wanted = strlen(nearest->wanted + strspn(nearest->wanted, "-"));

	if (d < nearest->distance && 2 * d <= (letters > wanted ? letters : wanted)) {
		nearest->distance = d;
		nearest->name = name;
	}
}
