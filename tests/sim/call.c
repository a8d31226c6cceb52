/* SPDX-License-Identifier: MIT */
/* From the entry of a simulated function to its return: the journal's marks, injected errors, latency, poison. */
#include "sim.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static __thread struct sim_call *innermost;

void sim_call_drop_outer(void)
{
	innermost = NULL;
}

/* The system call itself, not nanosleep(): a cancellation point here could leave the call unfinished. */
static void wait_ns(uint64_t ns)
{
	if (ns >= 50000) {
		struct timespec t = {ns / 1000000000, ns % 1000000000};
		syscall(SYS_nanosleep, &t, NULL);
		return;
	}
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	do
		clock_gettime(CLOCK_MONOTONIC, &b);
	while ((uint64_t)((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec) < ns);
}

static int injected_error(struct sim_api *api)
{
	uint32_t n = __atomic_add_fetch(&api->calls, 1, __ATOMIC_RELAXED);
	for (struct sim_fail *rule = api->fail; rule; rule = rule->next)
		if (!strcmp(rule->name, api->name) && n >= rule->first && n - rule->first < rule->count)
			return rule->code;
	return SIM_OK;
}

void sim_call_open(struct sim_call *call)
{
	struct sim_api *api = call->api;
	sim_process_check();
	if (!__atomic_load_n(&api->rules_read, __ATOMIC_ACQUIRE)) {
		api->fail = sim_process_fail_rules(api->name);
		api->latency_ns = sim_process_latency(api->name);
		__atomic_store_n(&api->rules_read, 1, __ATOMIC_RELEASE);
	}
	/* A frame below this one was left by longjmp or an exception. */
	while (innermost && (uintptr_t)innermost < (uintptr_t)call)
		innermost = innermost->outer;
	call->outer = innermost;
	call->number = 0;
	sim_journal_open_call(call);
	innermost = call;
	if (api->latency_ns)
		wait_ns(api->latency_ns / 2);
	call->result = api->fail ? injected_error(api) : SIM_OK;
}

static void poison(const struct sim_out *out)
{
	static const unsigned char pattern[4] = {0xef, 0xbe, 0xad, 0xde};
	unsigned char *at = out->at;
	for (size_t i = 0; at && i < out->size; i++)
		at[i] = pattern[i % 4];
}

int sim_call_close(struct sim_call *call, int result)
{
	int saved = errno;
	call->result = result;
	for (size_t i = 0; result && i < SIM_ARRAY_SIZE(call->out); i++)
		poison(&call->out[i]);
	sim_journal_close_call(call);
	if (call->api->latency_ns)
		wait_ns(call->api->latency_ns / 2);
	innermost = call->outer;
	errno = saved;
	return result;
}
