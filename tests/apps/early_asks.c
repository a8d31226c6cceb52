/* SPDX-License-Identifier: MIT */
/* A library that chooses a function while it is relocated, by a variable of the environment. */
#include <stdlib.h>

static int unset(void)
{
	return 1;
}

static int set(void)
{
	return 2;
}

typedef int chosen(void);
__attribute__((used)) static chosen *choose(void) /* clang sees no use of it */
{
	return getenv("EARLY_ASKS") ? set : unset;
}

int early_asks(void);
int chosen_early(void) __attribute__((ifunc("choose")));

int early_asks(void)
{
	return chosen_early(); /* so that this library's own relocation asks */
}
