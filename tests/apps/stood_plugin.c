/* SPDX-License-Identifier: MIT */
/* Built twice, with frames of two sizes: one is loaded where the other was. */
void passes_on(int (*stand)(void));

static volatile char sink;

__attribute__((noinline)) static int inner(int (*stand)(void))
{
	volatile char room[ROOM];

	room[0] = 1;
	return stand() + room[0];
}

void passes_on(int (*stand)(void))
{
	volatile char room[2 * ROOM];

	room[0] = 1;
	sink = (char)(inner(stand) + room[0]);
}
