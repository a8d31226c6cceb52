/* SPDX-License-Identifier: MIT */
#include "agent/life/life.h"

#include <pthread.h>
#include <sched.h>

#include "agent/symbols/symbols.h"
#include "agent/file/file.h"
#include "agent/stacks/stacks.h"

#define STACK_BYTES (1u << 20) /* independent of the program's default; vendors' libraries run on it too */
#define GUARD_BYTES (64u << 10)
#define ASLEEP_NS   5000000000ull /* time between two samples while the recording sleeps */
#define LOOK_NS	    90000000ull	  /* time between two looks at the program's seccomp filters and signals */
#define SERVED_NS   2000000ull	  /* the same, once the program has sent the writer a signal, or its last thread ends */
#define STATE_MASK  7u
#define PAUSER	    8u		 /* one of the threads for which it is PAUSED; they are counted above the state */
#define CHANGE_MASK 0xffffu	 /* the changes are counted above this */
#define PARK_NS	    100000000ull /* longest wait for its end: a vendor's library, or a lock of the waiting thread, may delay it */

/*
 * The low bits of `parking`.  STARTING: the thread does not run yet.  PAUSED: it sleeps.  RESUMED: its pause is over, and it has
 * not yet seen that.  The upper half counts the changes: a thread that saw the writer end may start the next one only if none was
 * started and parked meanwhile.
 */
enum parking { NOT_PARKED, PARKED, STARTING, PAUSED, RESUMED };

static enum parking state_of(uint32_t parking)
{
	return parking & STATE_MASK;
}

static uint32_t changed_to(enum parking state, uint32_t parking)
{
	return (parking | CHANGE_MASK) + 1 + state;
}

static bool is_in(enum parking state)
{
	return state_of(atomic_load(&sl_agent->parking)) == state;
}

static void change_to(enum parking state)
{
	atomic_store(&sl_agent->parking, changed_to(state, atomic_load(&sl_agent->parking)));
}

/*
 * The C library's count of threads: it ends the process with the last of them.  A symbol for debuggers, in libpthread, from glibc
 * 2.34 on in libc.  NULL: the C library lacks it.
 */
static const volatile unsigned *counted_threads;
static struct sl_mute program_signals;
static _Atomic long confined; /* the last thread that has a filter of its own */

static bool is_last(void)
{
	return counted_threads && *counted_threads == 1;
}

static bool has_to_end(void)
{
	return atomic_load(&sl_agent->finish) || is_in(PARKED) || is_last() || sl_open_proc_deserted();
}

/* Called after the end of the recording, by one thread. */
static bool nobody_is_left(void)
{
	sl_open_proc_look(sl_threads_trying);
	return is_last() || sl_open_proc_deserted();
}

/* With --host they are opened once the program has made a call: most processes make none. */
static bool libraries_opened;

static void open_libraries(void)
{
	if (libraries_opened || (sl_agent->options.host && !sl_ring_is_used(sl_agent->ring)))
		return;
	libraries_opened = true;
	if (sl_objects_trusted() && sl_agent->options.stacks & SL_STACKS_NATIVE) {
		sl_objects_use_begin(true);
		sl_stacks_open_libraries();
		sl_objects_use_end();
	}
}

/* All files and libraries that were needed when `asked` was read are open. */
static void say_settled(uint32_t asked)
{
	if (atomic_exchange(&sl_agent->settled, asked) != asked)
		sl_agent_wake(&sl_agent->settled);
}

static void say_here(void)
{
	uint32_t was = atomic_load(&sl_agent->parking);

	atomic_store(&sl_agent->writer, sl_agent->last_writer);
	if (state_of(was) == STARTING || state_of(was) == RESUMED)
		atomic_compare_exchange_strong(&sl_agent->parking, &was, changed_to(NOT_PARKED, was));
	sl_agent_wake(&sl_agent->writer);
}

static void say_away(void)
{
	atomic_store(&sl_agent->writer, 0);
	sl_agent_wake(&sl_agent->writer);
}

static void pause_if_asked(void)
{
	uint32_t parking;

	while (state_of(parking = atomic_load(&sl_agent->parking)) == PAUSED || state_of(parking) == RESUMED) {
		if (state_of(parking) == RESUMED) {
			say_here();
			continue;
		}
		say_away();
		sl_agent_sleep(&sl_agent->parking, parking, ASLEEP_NS);
	}
}

/*
 * Runs the program's handlers of signals that were sent to this thread alone, here, where it holds no lock.  A program that finds
 * its threads in /proc or by a pthread_create of its own stops them so, and waits until each has run the handler.  A filter may
 * come at any moment: what this asks is on the list of what a sandbox allows us.
 */
static bool serve_signals(void)
{
	/* Our own writes may raise the first; the others are the C library's. */
	const uint64_t never = SL_MUTE_BIT(SIGXFSZ) | SL_MUTE_BIT(SL_MUTE_CANCEL) | SL_MUTE_BIT(SL_MUTE_SETXID);
	uint64_t pending = sl_open_proc_own_pending() & ~never;

	if (!pending)
		return false;
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &pending, NULL, sizeof(pending));
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &pending, NULL, sizeof(pending));
	return true;
}

static void work(void)
{
	uint64_t interval_ns = sl_agent->options.device_interval * 1000000ull, sampled_ns = 0, looked_ns = 0;
	bool served = false;

	while (!has_to_end()) {
		uint32_t wake = atomic_load(&sl_agent->wake), asked = atomic_load(&sl_agent->asked);
		uint64_t now_ns = sl_agent_now(), sleep_ns;

		if (now_ns - looked_ns >= (served ? SERVED_NS : LOOK_NS)) {
			sl_open_proc_look(sl_threads_trying);
			sl_mute_tell(sl_open_proc_handled());
			served |= serve_signals();
			looked_ns = now_ns;
		}
		if (interval_ns && (now_ns - sampled_ns >= (sl_asleep_is() ? ASLEEP_NS : interval_ns) || sl_device_news())) {
			sl_device_sample(now_ns);
			sampled_ns = now_ns;
		}
		sl_clock_follow(&sl_agent->clock);
		sleep_ns = sl_writer_pass(now_ns);
		open_libraries();
		say_settled(asked);
		if (interval_ns && sleep_ns > interval_ns)
			sleep_ns = interval_ns;
		if ((served || now_ns - atomic_load(&sl_agent->left_ns) < LOOK_NS) && sleep_ns > SERVED_NS)
			sleep_ns = SERVED_NS;
		if (sleep_ns && !has_to_end())
			sl_agent_sleep(&sl_agent->wake, wake, sleep_ns);
		pause_if_asked();
	}
}

/* A signal ended the last thread of the program, and no process is to end well for that.  The ring keeps what there is. */
static void die_by(int how)
{
	uint64_t none[4] = {0}; /* the kernel's sigaction: the default */
	uint64_t signal = SL_MUTE_BIT(how & 0x7f);

	atomic_store(&sl_agent->ring->file->ended, 1 + (uint32_t)how);
	syscall(SYS_rt_sigaction, how & 0x7f, none, NULL, sizeof(signal));
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &signal, NULL, sizeof(signal));
	syscall(SYS_tgkill, sl_agent->process.pid, syscall(SYS_gettid), how & 0x7f);
}

/*
 * The C library now ends the process on this thread: with the program's signals, its exit handlers, whose calls are recorded,
 * and our destructor, which may encode here because the stack is ours.  If the last thread left by the system call `exit`, the
 * C library does not know: no handlers run, as without us, and this thread ends the process with the status of that thread.
 */
static void be_the_last(void)
{
	sl_agent->no_writer = sl_thread.writer = true;
	sl_agent_end(&sl_thread);
	if (sl_open_proc_deserted() && !is_last()) {
		int how = sl_open_proc_last_status(), code = how >> 8;

		if (how & 0x7f)
			die_by(how);
		sl_agent_life.left(code);
		syscall(sl_threads_trying() ? SYS_exit_group : SYS_exit, code);
	}
	sl_file_no_signals(false);
	program_signals.before |= 1ull << (SIGXFSZ - 1); /* SIGXFSZ of our own may be pending: it stays blocked */
	sl_mute_end(&program_signals);
}

/*
 * A signal of a fault that is sent to the process comes to this thread if all others block it.  So it takes only the one that its
 * own work raises: SIGSYS where filters trap its system calls.
 */
static void block_faults(void)
{
	uint64_t faults = SL_MUTE_BIT(SIGSEGV) | SL_MUTE_BIT(SIGBUS) | (sl_open_proc_filtered() ? 0 : SL_MUTE_BIT(SIGSYS));

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &faults, NULL, sizeof(faults));
}

/* A woken thread of this class does not take the processor of the one that woke it, or of another that is at work. */
static void be_patient(void)
{
	const int none = 0; /* the kernel's struct sched_param */

	if (syscall(SYS_sched_getscheduler, 0) == SCHED_OTHER)
		syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &none);
}

static void *run(void *unused)
{
	bool leaves = false;

	if (!sl_open_proc_sandboxed())
		be_patient();
	block_faults();
	sl_agent_begin(&sl_thread);
	sl_agent->last_writer = (uint32_t)syscall(SYS_gettid);
	say_here();
	sl_open_proc_writer_begin();
	sl_file_no_signals(true);
	sl_store_begin(sl_agent->store);
	sl_stacks_prepare();
	libraries_opened = false;
	open_libraries();
	for (work(); atomic_load(&sl_agent->finish); work()) { /* once more: exec failed, and the process goes on */
		if (sl_agent->options.device_interval)
			sl_device_sample_last(sl_agent_now());
		leaves = strcmp(sl_agent->how, "exec") != 0 && sl_sanitizers_of_threads();
		if (leaves) {
			change_to(PARKED);
			atomic_store(&sl_agent->stalled, 1); /* nobody is there for what comes after the end */
		}
		sl_writer_finish();
		if (leaves || !sl_late_serve(nobody_is_left))
			break;
	}
	if (!leaves && (atomic_load(&sl_agent->finish) || !is_in(PARKED))) {
		be_the_last();
		return unused;
	}
	sl_stacks_thread_end(); /* the stack is the next writer's */
	say_away();
	return unused;
}

void sl_writer_thread_signals(const struct sl_mute *mute)
{
	program_signals = *mute;
}

/* The thread is still in the kernel's list, where it stays a moment after its own code has run. */
static bool is_listed(uint32_t tid)
{
	return !syscall(SYS_tgkill, sl_agent->process.pid, tid, 0);
}

void sl_writer_thread_await_end(void)
{
	uint64_t deadline_ns = sl_agent_now() + PARK_NS;

	while (is_in(PARKED) && sl_agent->last_writer && is_listed(sl_agent->last_writer) && sl_agent_now() < deadline_ns)
		sched_yield();
}

/*
 * Makes a stack, because the program may have locked all memory that the C library maps.  All writers use it, one after the other;
 * the C library does not unmap it.
 */
static bool own_stack(pthread_attr_t *attr)
{
	int (*set_stack)(pthread_attr_t *, void *, size_t) = sl_resolve_symbol("pthread_attr_setstack");

	if (!set_stack)
		return false;
	if (!sl_agent->writer_stack) {
		sl_agent->writer_stack = sl_pages_map(STACK_BYTES);
		if (sl_agent->writer_stack)
			mprotect(sl_agent->writer_stack, GUARD_BYTES, PROT_NONE);
	}
	return sl_agent->writer_stack && !is_listed(sl_agent->last_writer) &&
	       !set_stack(attr, (char *)sl_agent->writer_stack + GUARD_BYTES, STACK_BYTES - GUARD_BYTES);
}

/* pthread_create moved between libraries over the years, so it is looked up and never imported. */
int sl_writer_thread_start(void)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = sl_resolve_symbol("pthread_create");
	int (*init)(pthread_attr_t *) = sl_resolve_symbol("pthread_attr_init");
	int (*set_stack)(pthread_attr_t *, size_t) = sl_resolve_symbol("pthread_attr_setstacksize");
	int (*set_detached)(pthread_attr_t *, int) = sl_resolve_symbol("pthread_attr_setdetachstate");
	struct sl_mute mute;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	if (!create || !init || !set_stack || !set_detached)
		return ENOSYS;
	counted_threads = sl_resolve_symbol("__nptl_nthreads");
	atomic_fetch_add(&sl_agent->asked, 1);
	change_to(STARTING);
	init(&attr);
	set_stack(&attr, STACK_BYTES);
	set_detached(&attr, PTHREAD_CREATE_DETACHED);
	if (sl_pages_are_locked())
		own_stack(&attr);
	mute = sl_mute_begin();
	err = create(&thread, &attr, run, NULL);
	if (err == EAGAIN && own_stack(&attr))
		err = create(&thread, &attr, run, NULL);
	if (err)
		change_to(NOT_PARKED);
	sl_mute_end(&mute);
	return err;
}

/* What `parking` becomes when a thread wants the writer away; 0: not now. */
static uint32_t sent_away(uint32_t was, bool ends)
{
	switch (state_of(was)) {
	case NOT_PARKED:
		return changed_to(ends ? PARKED : PAUSED, was);
	case RESUMED:
		return ends ? 0 : changed_to(PAUSED, was);
	case PAUSED:
		return ends ? 0 : was + PAUSER;
	default:
		return 0;
	}
}

bool sl_writer_thread_park(bool ends)
{
	struct sl_agent *agent = sl_agent;
	uint64_t deadline_ns = sl_agent_now() + PARK_NS;
	enum parking state = ends ? PARKED : PAUSED;
	uint32_t tid, was, next;
	int saved = errno;
	bool listed;

	if (agent->no_writer)
		return false;
	do {
		was = atomic_load(&agent->parking);
		next = sent_away(was, ends);
		if (next)
			continue;
		if (state_of(was) == PARKED || sl_agent_now() >= deadline_ns)
			return false;
		sl_agent_sleep(&agent->writer, 0, PARK_NS / 100); /* the thread was made a moment ago, or another has it pause */
	} while (!next || !atomic_compare_exchange_strong(&agent->parking, &was, next));
	tid = atomic_load(&agent->writer);
	sl_agent_call_writer(agent);
	while (atomic_load(&agent->writer) && is_in(state) && sl_agent_now() < deadline_ns)
		sl_agent_sleep(&agent->writer, tid, PARK_NS / 10);
	while ((listed = ends && tid && is_listed(tid)) && sl_agent_now() < deadline_ns)
		sched_yield();
	errno = saved;
	return !listed;
}

bool sl_writer_thread_resume(bool for_all)
{
	uint32_t was = atomic_load(&sl_agent->parking), next;

	do {
		if (state_of(was) != PAUSED)
			return false;
		next = for_all || (was & CHANGE_MASK) < PAUSED + PAUSER ? changed_to(RESUMED, was) : was - PAUSER;
	} while (!atomic_compare_exchange_strong(&sl_agent->parking, &was, next));
	if (state_of(next) == RESUMED)
		sl_agent_wake(&sl_agent->parking);
	return true;
}

void sl_writer_thread_left(void)
{
	if (!counted_threads || *counted_threads != 2 || sl_agent->no_writer)
		return;
	atomic_store(&sl_agent->left_ns, sl_agent_now());
	sl_agent_call_writer(sl_agent);
}

void sl_writer_thread_put_off(void)
{
	change_to(PARKED);
}

/* A writer that has not ended in time is waited for by its successor: two at once would write over each other. */
bool sl_writer_thread_is_parked(void)
{
	return is_in(PARKED) && !atomic_load(&sl_agent->writer);
}

/* It was found once that this thread must not make the writer. */
bool sl_writer_thread_is_forbidden(void)
{
	return atomic_load(&confined) && atomic_load(&confined) == syscall(SYS_gettid);
}

static bool must_not_make_it(void)
{
	if (!sl_open_proc_confined_alone())
		return false;
	atomic_store(&confined, syscall(SYS_gettid));
	return true;
}

bool sl_writer_thread_unpark(void)
{
	struct sl_agent *agent = sl_agent;
	uint32_t was = atomic_load(&agent->parking);
	struct sl_mute mute;

	if (state_of(was) != PARKED || atomic_load(&agent->writer) ||
	    !atomic_compare_exchange_strong(&agent->parking, &was, changed_to(STARTING, was)))
		return true;
	if (must_not_make_it()) {
		change_to(PARKED);
		return false;
	}
	mute = sl_mute_begin();
	agent->no_writer = agent->store->plain = false;
	if (sl_writer_thread_start()) {
		agent->no_writer = agent->store->plain = true;
		change_to(PARKED); /* the next call that looks tries again */
	}
	sl_mute_end(&mute);
	return true;
}
