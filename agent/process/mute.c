/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"

_Atomic uint64_t sl_mute_handled;

static const int signals[] = {SIGSEGV, SIGBUS, SIGSYS};

void sl_mute_look(void)
{
	uint64_t handled = 0;

	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		uintptr_t action[8]; /* as the kernel has it: the handler comes first */

		if (!syscall(SYS_rt_sigaction, signals[i], NULL, action, sizeof(uint64_t)) && action[0] > (uintptr_t)SIG_IGN)
			handled |= SL_MUTE_BIT(signals[i]);
	}
	atomic_store_explicit(&sl_mute_handled, handled, memory_order_relaxed);
}

void sl_mute_tell(uint64_t handled)
{
	uint64_t faults = 0;

	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		faults |= SL_MUTE_BIT(signals[i]);
	atomic_store_explicit(&sl_mute_handled, handled & faults, memory_order_relaxed);
}
