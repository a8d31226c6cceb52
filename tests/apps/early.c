/* SPDX-License-Identifier: MIT */
/* Ends with what a library chose before main, when the agent was not relocated yet. */
int early_asks(void);

int main(void)
{
	return early_asks();
}
