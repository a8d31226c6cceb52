/* SPDX-License-Identifier: MIT */
/* The newer liblzma.so.5 that a program brings along: of the system's it has nothing but the name. */
int brought_number(void);
int brought_number(void)
{
	return 99;
}
