/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"

#include <linux/futex.h>
#include <time.h>

#define LOOK_NS	   20000000ull
#define LOOKS_MAX  5	       /* long after an exec has failed or has ended the program */
#define SETTLE_NS  20000000ull /* longest wait for the trace's header, libunwind and NVML */
#define SETTLE_MAX 10	       /* most such waits, where the writer has no processor */

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

void sl_agent_await_exec(void)
{
	struct sl_agent *agent = sl_agent;

	if (SL_LIKELY(!atomic_load(&agent->in_exec)))
		return;
	for (unsigned looks = 0; atomic_load(&agent->in_exec) && looks < LOOKS_MAX; looks++)
		sl_agent_sleep(&agent->in_exec, 1, LOOK_NS);
	atomic_store(&agent->in_exec, 0);
}

void sl_agent_call_writer(struct sl_agent *agent)
{
	atomic_fetch_add(&agent->wake, 1);
	sl_agent_wake(&agent->wake);
}

/* It waits neither for a lock nor for the trace's disk.  Not known in a sandbox, where the file that says so may not be opened. */
static bool is_at_work(uint32_t writer)
{
	char state = sl_open_proc_sandboxed() ? 0 : sl_procfile_state(writer);

	return state == 'R' || (state == 'D' && !atomic_load(&sl_agent->writing_since_ns));
}

void sl_agent_settle(void)
{
	struct sl_agent *agent = sl_agent;
	uint32_t asked = atomic_load(&agent->asked), settled, writer;

	for (unsigned waits = 0; waits < SETTLE_MAX; waits++) {
		settled = atomic_load(&agent->settled);
		writer = atomic_load(&agent->writer);
		if ((int32_t)(settled - asked) >= 0 || (int32_t)(settled - atomic_load(&agent->in_vain)) < 0 || agent->no_writer ||
		    atomic_load(&agent->finish))
			return;
		if (waits && (writer ? !is_at_work(writer) : settled))
			break;
		sl_agent_sleep(&agent->settled, settled, SETTLE_NS);
	}
	atomic_store(&agent->in_vain, asked); /* no effect if the writer has just done it */
}

void sl_agent_ask(void)
{
	if (!atomic_load(&sl_agent->writer))
		return;
	atomic_fetch_add(&sl_agent->asked, 1);
	sl_agent_call_writer(sl_agent);
	sl_agent_settle();
}
