/* SPDX-License-Identifier: MIT */
/* The process-wide state of the simulator: its lock and the detection of a fork. */
#include "sim.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct sim_config sim_config;
struct sim_process sim_process;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t setup_lock = PTHREAD_MUTEX_INITIALIZER;
/* Zero in a child, however it was made: _Fork and a bare clone run no atfork handlers. */
static volatile uint32_t *alive;

void sim_lock(void)
{
	pthread_mutex_lock(&lock);
}

void sim_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void notice_fork(void)
{
	/* Only the thread that forked exists here, so no thread holds the lock. */
	memset(&lock, 0, sizeof lock);
	sim_process.forked = sim_process.initialized;
	sim_process.initialized = false;
	sim_process.generation++;
	sim_journal_forget();
	sim_device_forget();
	sim_call_drop_outer();
}

void sim_process_check(void)
{
	if (__builtin_expect(alive && *alive, 1))
		return;
	if (alive)
		memset(&setup_lock, 0, sizeof setup_lock);
	pthread_mutex_lock(&setup_lock);
	if (!alive) {
		sim_settings_read();
		sim_process.generation = 1;
		void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(page, 4096, MADV_WIPEONFORK);
		*(volatile uint32_t *)page = 1;
		__atomic_store_n(&alive, page, __ATOMIC_RELEASE);
	} else if (!*alive) {
		notice_fork();
		*alive = 1;
	}
	pthread_mutex_unlock(&setup_lock);
}
