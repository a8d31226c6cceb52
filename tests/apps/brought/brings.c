/* SPDX-License-Identifier: MIT */
/* A library with a liblzma of its own beside it. */
int brought_number(void);
int brings_number(void);
int brings_number(void)
{
	return brought_number();
}
