/* SPDX-License-Identifier: MIT */
#include "agent/agent.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct sl_agent sl_agent_idle;
struct sl_agent *_Atomic sl_agent = &sl_agent_idle;
__thread struct sl_agent_thread sl_thread;

uint64_t sl_agent_now(void)
{
	return sl_clock_after(&sl_agent->clock);
}

void sl_agent_sleep(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / SL_NS_PER_S), .tv_nsec = (long)(timeout_ns % SL_NS_PER_S)};

	syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

void sl_agent_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void sl_agent_call_writer(struct sl_agent *agent)
{
	atomic_fetch_add(&agent->wake, 1);
	sl_agent_wake(&agent->wake);
}
