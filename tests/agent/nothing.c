/* SPDX-License-Identifier: MIT */
/* Stands for the agent where the launcher alone is tested: loads, does nothing. */
int sl_nothing(void);

int sl_nothing(void)
{
	return 0;
}
