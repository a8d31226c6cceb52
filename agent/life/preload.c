/* SPDX-License-Identifier: MIT */
/* Longer than other files: the one file that knows the order of start, fork, exec and exit. */
#include "agent/life/life.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "agent/symbols/symbols.h"
#include "agent/file/file.h"
#include "agent/process/valgrind.h"
#include "agent/stacks/stacks.h"
#include "common/text.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define END_NS 20000000ull /* other threads that made no call for so long are at work no more */
/* If exec fails when the ring's file has gone, a new one takes its place: a call of another thread just then would be lost. */
#define EXEC_NS	  1000000000ull
#define START_NS  1000000000ull /* a thread that waits for another's start looks again after this time */
#define STARTS	  10		/* and so often: a handler of a fault may have left the start by longjmp */
#define FINISH_NS 2000000000ull /* longest wait of the process's end for the disk */
#define SEGMENTS  3		/* segments of a fresh ring: the log, one thread, one spare */

#define DESCRIPTORS 9u /* ours and those of a driver */
#define KEY_WANTED  31 /* glibc keeps the values of the first 32 keys inside the thread's descriptor */

/* What the kernel empties in a child. */
struct recording {
	struct sl_agent agent;
	struct sl_ring ring;
	struct sl_trace_store store;
};

extern void *__libc_stack_end __attribute__((weak)); /* the kernel put the number of arguments there; musl has none */

static pthread_key_t key; /* one for the process image; its destructor tells us that a thread ends */
static bool have_key;
static bool constructed;     /* the C library is ready */
static _Atomic long starter; /* thread that starts the recording, or did */

/* --- start ------------------------------------------------------------------------------------------ */

/*
 * Linux before 4.14 has no MADV_WIPEONFORK.  There the C library's fork() calls this; other ways to fork are not seen.  The
 * pages are given back and not filled with zeros, which would take some megabytes in every child.
 */
static void forget_in_child(void)
{
	if (madvise((void *)sl_agent, (sizeof(struct recording) + 4095) & ~(size_t)4095, MADV_DONTNEED))
		memset((struct recording *)sl_agent, 0, sizeof(struct recording));
}

extern const char library_data[] __asm__("_DYNAMIC") SL_HIDDEN, library_end[] __asm__("_end") SL_HIDDEN; /* the linker's */

/* The pages that hold the recording, made once per process image. */
static struct sl_agent *make_pages(void)
{
	struct recording *pages = sl_pages_map(sizeof(*pages));
	struct sl_agent *expected = &sl_agent_idle;

	sl_valgrind_share(library_data, (uint64_t)(library_end - library_data));

	if (!pages) {
		atomic_store(&sl_agent_idle.phase, SL_PHASE_OFF); /* so that it is not asked for at every call */
		return NULL;
	}
	if (madvise(pages, (sizeof(*pages) + 4095) & ~(size_t)4095, MADV_WIPEONFORK))
		__register_atfork(NULL, NULL, forget_in_child, NULL);
	if (!atomic_compare_exchange_strong(&sl_agent, &expected, &pages->agent)) {
		munmap(pages, sizeof(*pages));
		return expected;
	}
	return &pages->agent;
}

static void bad_option(const char *variable, const char *value)
{
	char text[256];
	struct sl_text note = sl_text_begin(text, sizeof(text));

	sl_text_add(&note, variable);
	sl_text_add(&note, "=");
	sl_text_add(&note, value);
	sl_text_add(&note, " is not understood; the default is used");
	sl_define_note(text);
}

/* Writes the identity into the ring; the writer puts it into the file before anything else. */
static int write_header(struct sl_agent *agent)
{
	struct sl_ringfile *file = agent->ring->file;
	uint8_t *map = (uint8_t *)file + SL_RINGFILE_HEADER_AT;
	const char *name;
	size_t bytes = sl_process_header(map, SL_RINGFILE_HEAD - SL_RINGFILE_HEADER_AT, &agent->process, &agent->options,
					 sl_store_ring_name(agent->store), 1);

	if (!bytes)
		return ENOSPC;
	file->pid = agent->process.pid;
	file->process_start = agent->process.process_start;
	file->leaves_by_call = sl_runtime_leaves_by_call();
	memcpy(file->boot_id, agent->process.boot_id, sizeof(file->boot_id));
	name = agent->store->ring_elsewhere ? agent->store->trace : strrchr(agent->store->trace, '/') + 1;
	struct sl_text trace = sl_text_begin(file->trace, sizeof(file->trace));

	sl_text_add(&trace, name);
	file->header_bytes = (uint32_t)bytes;
	memcpy(file->magic, SL_RINGFILE_MAGIC, sizeof(file->magic));
	atomic_store(&file->state, SL_PROCESS_RUNNING);
	return 0;
}

static int open_files(struct sl_agent *agent)
{
	int ring_fd = -1, err;

	if (!sl_file_can_open(DESCRIPTORS))
		return EMFILE;
	if (!sl_writer_prepare())
		return ENOMEM;
	if ((err = sl_process_make_directory(&agent->process)) || (err = sl_store_claim(agent->store, &agent->process, &ring_fd)))
		return err;
	err = sl_ring_create(agent->ring, ring_fd, agent->store->ring, agent->store->ring_elsewhere, SEGMENTS,
			     !agent->options.host);
	if (!err) {
		sl_file_lock(ring_fd);
		int defs = sl_ring_claim(agent->ring, SL_SEGMENT_DEFS, 0, 0, 0);

		atomic_store(&agent->ring->log, (uint64_t)defs << 32);
		err = write_header(agent);
	}
	if (err)
		sl_store_abandon(agent->store);
	return err;
}

/* A handler that calls meanwhile would wait for the producer that this thread has just given up: it runs afterwards. */
static void thread_ended(void *producer)
{
	struct sl_agent_thread *thread = &sl_thread;
	struct sl_mute mute;

	if (thread->ring != producer || thread->generation != atomic_load(&sl_agent->generation))
		return;
	mute = sl_mute_begin();
	sl_stacks_unwound(); /* cancellation, or a handler's longjmp, may have left it in the middle of a stack */
	sl_stacks_thread_end();
	sl_unwound_end(thread);
	sl_ring_detach(sl_agent->ring, thread->ring);
	sl_writer_thread_left();
	thread->generation = 0;
	thread->ring = NULL;
	sl_mute_end(&mute);
}

/*
 * The C library of another namespace (dlmopen) counts its keys from 0 too, in the same table of the thread.  It would take
 * a value of ours with a low number for its own (dlerror of glibc before 2.34 does).  So we use the last key for which a
 * thread needs no more memory.
 */
static void make_key(void)
{
	int (*create)(pthread_key_t *, void (*)(void *)) = sl_resolve_symbol("pthread_key_create");
	int (*delete)(pthread_key_t) = sl_resolve_symbol("pthread_key_delete");
	pthread_key_t low[KEY_WANTED];
	unsigned count = 0;

	if (!create || !delete)
		return;
	while ((have_key = !create(&key, thread_ended)) && key < KEY_WANTED && count < KEY_WANTED)
		low[count++] = key;
	while (count)
		delete (low[--count]);
}

/* Another copy of the library, at another path, would record every call too: only the one that gets the calls first records. */
#define OF_EVERY_COPY "stormlog_api_v1"

static bool is_second_copy(void)
{
	return sl_resolve_before_us(OF_EVERY_COPY, NULL) != NULL;
}

static void say_second_copy(void)
{
	if (sl_resolve_is_behind_us(OF_EVERY_COPY))
		sl_define_note("the library is loaded twice, from two paths: the first of them records");
}

static SL_STARTUP_TEXT bool is_ours(struct sl_agent *agent)
{
	return agent != &sl_agent_idle && atomic_load(&agent->generation) && (uint64_t)syscall(SYS_getpid) == agent->process.pid;
}

static bool is_running(struct sl_agent *agent)
{
	return is_ours(agent) && atomic_load(&agent->phase) == SL_PHASE_RUNNING;
}

/* Another thread may be about to start the recording, which would not know that it has ended. */
static void await_start(void)
{
	struct sl_agent *agent = sl_agent;

	if (agent == &sl_agent_idle) /* no call yet: a process without a GPU touches no page of ours */
		return;
	for (unsigned waits = 0; atomic_load(&agent->phase) == SL_PHASE_STARTING && waits < 20; waits++) {
		if (atomic_load(&starter) == syscall(SYS_gettid))
			return;
		sl_agent_sleep(&agent->phase, SL_PHASE_STARTING, FINISH_NS / 20);
	}
}

void sl_preload_status(int status)
{
	await_start();
	if (is_ours(sl_agent))
		atomic_store(&sl_agent->status, 1 + (uint32_t)(status & 0xff)); /* the eight bits that the parent sees */
}

void sl_preload_uncounted(void)
{
	if (is_running(sl_agent) && sl_sanitizers_of_threads())
		sl_writer_thread_park(true);
}

static bool has_locked_memory(void)
{
	char line[24];
	uint64_t kib;

	return sl_procfile_find("/proc/self/status", "VmLck:", line, sizeof(line)) && sl_procfile_digits(line, &kib) && kib;
}

/*
 * The environment that the kernel gave.  A program's .preinit_array runs before the C library has set __environ, which it sets to
 * the same.  NULL: not known.
 */
static char **first_environment(void)
{
	char **arguments = (char **)__libc_stack_end;

	return arguments ? arguments + (uintptr_t)*arguments + 2 : NULL; /* behind their number, the arguments and NULL */
}

static void start(struct sl_agent *agent)
{
	struct sl_options *options = &agent->options;

	bool inherited = sl_ring_drop_inherited(), may_allocate, threads, meant;
	int err;

	if (has_locked_memory())
		sl_pages_unlock(agent, sizeof(struct recording));
	agent->ring = &((struct recording *)agent)->ring;
	agent->store = &((struct recording *)agent)->store;
	if (!__environ && !constructed)
		__environ = first_environment();
	sl_options_read(options, NULL);
	agent->dry = sl_options_variable("STORMLOG_DRY_CARD") != NULL;
	sl_process_identify(&agent->process, options);
	meant = !is_second_copy() && sl_process_wanted(&agent->process, options);
	err = meant ? open_files(agent) : 0;
	sl_ring_end_inheritance(err);
	if (!meant || err) {
		atomic_store(&agent->phase, SL_PHASE_OFF);
		return;
	}
	sl_options_read(options, bad_option); /* said again: now there is a trace to say it in */
	say_second_copy();
	if (!have_key)
		make_key();
	sl_open_proc_begin();
	sl_known_forget();
	may_allocate = sl_stacks_may_allocate();
	sl_asleep_begin(options->asleep);
	if (inherited) {
		sl_stacks_child();
		sl_device_child();
	}
	threads = (may_allocate || sl_objects_trusted()) && sl_threads_try();
	if (!sl_objects_trusted()) {
		sl_native_disable("forked while another thread held the loader's lock");
		sl_define_note("forked while another thread held the loader's lock: no native stacks, no NVML");
	}
	sl_stacks_start(options->stacks, (unsigned)options->stack_depth);
	sl_limit_start(options);
	if (threads && (!may_allocate || options->host || sl_open_proc_confined_alone()))
		sl_writer_thread_put_off();
	else if (!threads || sl_writer_thread_start()) {
		agent->no_writer = agent->store->plain = true;
		sl_asleep_begin(false); /* nobody would wake the writer */
		sl_store_begin(agent->store);
		sl_define_note("no background thread could be started: this trace ends when the ring is full");
	} else
		sl_agent_settle();
	/* A generation is never 0 and never the parent's: a forked child's threads must not take their old ring for theirs. */
	atomic_store(&agent->generation, agent->process.monotonic_ns << 22 | agent->process.pid);
	/* Last: threads that wait for the phase look at the generation then, and would not record their call without one. */
	atomic_store(&agent->phase, SL_PHASE_RUNNING);
}

/*
 * Only the thread that moved IDLE to STARTING starts the recording.  Others wait, except for that thread's own signal
 * handler.  If that thread comes again it has left its start, and nothing is recorded.
 */
static bool ensure_started(const struct sl_mute *signals)
{
	struct sl_agent *agent = sl_agent == &sl_agent_idle ? make_pages() : sl_agent;
	uint32_t expected = SL_PHASE_IDLE;
	long tid = syscall(SYS_gettid);

	if (!agent)
		return false;
	if (atomic_compare_exchange_strong(&agent->phase, &expected, SL_PHASE_STARTING)) {
		atomic_store(&starter, tid);
		sl_writer_thread_signals(signals);
		start(agent);
		sl_agent_wake(&agent->phase);
	}
	for (unsigned waits = 0; atomic_load(&agent->phase) == SL_PHASE_STARTING; waits++) {
		expected = SL_PHASE_STARTING;
		if (atomic_load(&starter) == tid || waits == STARTS)
			atomic_compare_exchange_strong(&agent->phase, &expected, SL_PHASE_OFF);
		else
			sl_agent_sleep(&agent->phase, SL_PHASE_STARTING, START_NS);
	}
	return is_ours(agent); /* not in a vfork child: what it stored in its parent's sl_thread would pass for the parent's */
}

/* A signal handler may have interrupted malloc, which making a thread calls. */
static bool unpark(void)
{
	if (sl_writer_thread_resume(true) || !sl_writer_thread_is_parked())
		return true;
	if (sl_writer_thread_is_forbidden() || !is_ours(sl_agent) ||
	    (!sl_ring_is_used(sl_agent->ring) && !sl_agent->options.host) || !sl_stacks_may_allocate())
		return false;
	return sl_writer_thread_unpark();
}

static void define_thread(const struct sl_producer *producer, int tid)
{
	uint8_t bytes[256];
	char name[32] = "";
	struct sl_definition map;
	ssize_t n = sl_file_read("/proc/thread-self/comm", name, sizeof(name));

	if (n > 0 && name[n - 1] == '\n')
		name[n - 1] = 0;
	map = sl_definition_thread(bytes, sizeof(bytes), producer->thread, tid, name, sl_agent_now());
	sl_define_publish(&map);
}

static bool attach(struct sl_agent_thread *thread, const struct sl_mute *signals)
{
	int (*set)(pthread_key_t, const void *);
	int tid = (int)syscall(SYS_gettid);
	bool sampled; /* with --host the writer may be there, and has opened nothing for a GPU */

	if (thread->generation) {
		/* In a forked child: the thread's state is the parent's. */
		thread->generation = 0;
		thread->ring = NULL;
		sl_unwound_forget(thread);
	}
	if (!ensure_started(signals))
		return false;
	sampled = sl_agent->options.host && !sl_ring_is_used(sl_agent->ring);
	thread->ring = sl_ring_attach(sl_agent->ring, tid);
	if (sl_agent_unpark() && sampled && !sl_agent->no_writer) {
		sl_agent_ask();
		sl_agent_settle(); /* where the writer begins just now */
	}
	if (!thread->ring)
		return false;
	define_thread(thread->ring, tid);
	sl_stacks_modules(false);
	thread->generation = atomic_load(&sl_agent->generation);
	if (have_key && (set = sl_resolve_symbol("pthread_setspecific")))
		set(key, thread->ring);
	return true;
}

/*
 * Other threads wait for the one that starts the recording, so that thread must come back: meanwhile no handler of the
 * program runs, which may leave by longjmp, and no cancellation is acted upon, for which much of the C library has points.
 */
static bool undisturbed(bool (*work)(struct sl_agent_thread *, const struct sl_mute *))
{
	struct sl_agent_thread *thread = &sl_thread;
	int saved = errno, cancel;
	struct sl_mute mute;
	bool done;

	if (thread->inside || atomic_load(&sl_agent->phase) == SL_PHASE_OFF || !sl_stacks_has_room(SL_STACKS_ROOM_FIRST))
		return false;
	if (!sl_open_proc_sandboxed())
		sl_mute_look();
	mute = sl_mute_begin();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	sl_agent_begin(thread);
	done = work(thread, &mute);
	sl_agent_end(thread);
	if (done) {
		sl_early_notes_attached();
		sl_labels_attached();
	}
	pthread_setcancelstate(cancel, NULL);
	sl_mute_end(&mute);
	errno = saved;
	return done;
}

static bool attach_thread(void)
{
	return undisturbed(attach);
}

/* --- end -------------------------------------------------------------------------------------------- */

/* This thread is the writer and the last of the process. */
static SL_NOINLINE void finish_as_writer(void)
{
	sl_writer_finish();
}

static SL_NOINLINE void finish_alone(void)
{
	sl_open_proc_look(sl_threads_trying);
	sl_store_begin(sl_agent->store); /* there is no header yet if the writer was put off to the end */
	if (sl_agent->options.device_interval)
		sl_device_sample_host(sl_agent_now());
	if (sl_thread.writer)
		finish_as_writer();
	else
		sl_writer_leave();
}

static void exec_is_over(struct sl_agent *agent)
{
	atomic_store(&agent->in_exec, 0);
	sl_agent_wake(&agent->in_exec);
}

static void remove_ring(struct sl_agent *agent, bool exec)
{
	if (exec) {
		atomic_store(&agent->in_exec, 1);
		sl_ring_remind(agent->ring);
	}
	sl_store_remove_ring(agent->store, agent->ring, sl_thread.ring, exec ? EXEC_NS : END_NS);
	if (!agent->store->ring_removed)
		exec_is_over(agent);
}

/* True: this thread finishes the recording.  One exec at a time: the next one waits until the first has failed. */
static bool begin_finish(struct sl_agent *agent, bool exec)
{
	uint64_t begin_ns = sl_agent_now();
	uint32_t expected = SL_PHASE_RUNNING, other;

	while (!atomic_compare_exchange_strong(&agent->phase, &expected, SL_PHASE_LATE)) {
		other = atomic_load(&agent->exec_by);
		if (!exec || !other || other == (uint32_t)syscall(SYS_gettid) || sl_agent_now() - begin_ns > FINISH_NS)
			return false;
		sl_agent_sleep(&agent->exec_by, other, FINISH_NS / 20);
		expected = SL_PHASE_RUNNING;
	}
	if (exec)
		atomic_store(&agent->exec_by, (uint32_t)syscall(SYS_gettid));
	return true;
}

void sl_preload_finish(const char *how)
{
	struct sl_agent *agent = sl_agent;
	bool exec = !strcmp(how, "exec");
	int saved = errno;
	struct sl_mute mute;
	uint64_t deadline;

	await_start();
	if (!is_ours(agent))
		return;
	mute = sl_mute_begin();
	if (!begin_finish(agent, exec)) {
		sl_mute_end(&mute);
		errno = saved;
		return;
	}
	atomic_store(&agent->ring->file->state, SL_PROCESS_COMPLETED);
	if (atomic_load(&agent->ring->file->ended)) /* stormlog-run --until ends it, and its status is no failure */
		atomic_store(&agent->status, 1 + ((atomic_load(&agent->ring->file->ended) - 1) >> 8 & 0xff));
	if (atomic_load(&agent->status)) /* as wait() gives it: the footer may find no room */
		atomic_store(&agent->ring->file->ended, 1 + ((atomic_load(&agent->status) - 1) << 8));
	agent->how = how;
	atomic_store(&agent->finish, 1);
	if (!sl_agent_unpark())
		agent->no_writer = agent->store->plain = true;
	if (agent->no_writer)
		finish_alone();
	sl_agent_call_writer(agent);
	sl_mute_end(&mute);
	deadline = sl_agent_now() + FINISH_NS;
	while (!atomic_load(&agent->finished) && sl_agent_now() < deadline) {
		sl_agent_unpark(); /* the writer was slow to end */
		sl_agent_sleep(&agent->finished, 0, FINISH_NS / 20);
	}
	/* Other threads may be at work to the last moment: then the ring stays and holds what they still do. */
	if (atomic_load(&agent->finished) == 1 && (!agent->store->plain || !sl_ring_is_used(agent->ring)) &&
	    !sl_open_proc_sandboxed())
		remove_ring(agent, exec);
	sl_writer_thread_await_end();
	errno = saved;
}

/* The process ends with that status, and no code of the program runs any more. */
static void left(int status)
{
	sl_preload_status(status);
	sl_preload_finish("exit");
}

static const struct sl_agent_life life __attribute__((section("sl_life"), used)) = {attach_thread, unpark, sl_late_write, left};

void sl_preload_resume(void)
{
	struct sl_agent *agent = sl_agent;
	uint32_t own = (uint32_t)syscall(SYS_gettid);
	int saved = errno;
	struct sl_mute mute;

	if (!is_ours(agent) || atomic_load(&agent->exec_by) != own)
		return;
	mute = sl_mute_begin();
	/* Where other threads are at work the ring is still there, and a new file would miss what they do meanwhile. */
	if (atomic_load(&agent->finished) == 1 && (!agent->store->ring_removed || !sl_ring_rebuild(agent->ring))) {
		agent->store->ring_removed = false;
		atomic_store(&agent->finish, 0);
		atomic_store(&agent->finished, 0);
		sl_agent_wake(&agent->late_written);
		atomic_store(&agent->ring->file->state, SL_PROCESS_RUNNING);
		exec_is_over(agent);
		if (!agent->exec_failed)
			sl_capability_write("exec_failed", "true"); /* the process went on */
		agent->exec_failed = true;
		atomic_store(&agent->phase, SL_PHASE_RUNNING);
		sl_agent_call_writer(agent);
	}
	exec_is_over(agent);
	atomic_compare_exchange_strong(&agent->exec_by, &own, 0); /* where the next exec has not begun */
	sl_agent_wake(&agent->exec_by);
	sl_mute_end(&mute);
	errno = saved;
}

/* --- what only a process of one thread may do ------------------------------------------------------- */

bool sl_preload_alone(void)
{
	await_start(); /* files of which some are this user's and some are not could not all be opened */
	return is_running(sl_agent) && sl_writer_thread_park(true);
}

void sl_preload_not_alone(void)
{
	if (is_ours(sl_agent))
		sl_agent_unpark();
}

/* Its own files are open; those whom it starts as that user need to make some. */
void sl_preload_rights_changed(void)
{
	int saved = errno;

	sl_preload_not_alone();
#ifdef SYS_faccessat2
	if (is_running(sl_agent) && !sl_agent->unwelcome && !sl_open_proc_sandboxed() &&
	    syscall(SYS_faccessat2, AT_FDCWD, sl_agent->process.directory, W_OK | X_OK, AT_EACCESS) && errno == EACCES) {
		sl_agent->unwelcome = true;
		sl_define_note(
			"it became a user who may not write in the trace's folder: processes that it starts as that user are not "
			"recorded");
	}
#endif
	errno = saved;
}

/*
 * From Python 3.12 on fork() counts the threads when it has returned, and warns of more than one; ThreadSanitizer lets the child
 * of a process with more than one make none.  There the writer ends, and stays away until the program's next call.
 */
static bool counts_threads(void)
{
	const unsigned long *version = sl_resolve_symbol("Py_Version"); /* since 3.11 */

	return sl_sanitizers_present() || (version && *version >= 0x030c0000);
}

static void before_fork(void)
{
	bool ends = counts_threads(), away = is_running(sl_agent) && sl_writer_thread_park(ends);

	sl_thread.parks = away && ends;
	sl_thread.pauses += away && !ends;
	sl_objects_fork_begin();
}

/* Makes no thread: a library that asked for fork() after us still holds its locks, which making one may take. */
static void after_fork(void)
{
	bool paused = sl_thread.pauses;

	sl_thread.pauses -= paused;
	sl_objects_fork_end();
	if (!is_running(sl_agent))
		return;
	if (sl_thread.parks) /* renewed by each fork, it would keep the writer away */
		atomic_store(&sl_agent->forked_ns, sl_agent_now());
	if (paused)
		sl_writer_thread_resume(false);
	else
		sl_ring_remind(sl_agent->ring);
}

/* Recording is tried again in the child: it may have memory where its parent had none. */
static void in_child(void)
{
	sl_objects_forked();
	sl_thread.pauses = 0;
	if (atomic_load(&sl_agent_idle.phase) == SL_PHASE_OFF)
		atomic_store(&sl_agent_idle.phase, SL_PHASE_IDLE);
}

static bool begin(struct sl_agent_thread *thread, const struct sl_mute *signals)
{
	if (ensure_started(signals) && sl_agent_unpark())
		sl_agent_settle(); /* what the writer opens takes low numbers for a moment */
	return false;
}

/* --host: a program that never touches a GPU begins its recording here, and its writer samples. */
static SL_STARTUP_TEXT void start_host(void)
{
	struct sl_options options;

	if (!sl_options_variable("STORMLOG_HOST"))
		return;
	sl_options_read(&options, NULL);
	if (options.host)
		undisturbed(begin);
}

__attribute__((constructor)) static void construct(void)
{
	if (!__register_atfork) {
		atomic_store(&sl_agent_idle.phase, SL_PHASE_OFF); /* musl: the program starts without a recording */
		return;
	}
	constructed = true;
	sl_options_keep();
	sl_objects_construct();
	__register_atfork(before_fork, after_fork, in_child, NULL);
	start_host();
}

static void end_with(int status, void *unused)
{
	sl_preload_status(status);
	sl_preload_finish("exit");
}

/*
 * A destructor is not told how main ended.  What it gives to on_exit is: the C library calls that next, when all destructors of
 * libraries have run.  Its table has room without memory of its own, since this is one of those functions.
 */
__attribute__((destructor)) static SL_STARTUP_TEXT void destruct(void)
{
	int (*at_end)(void (*)(int, void *), void *);

	if (sl_agent == &sl_agent_idle)
		return;
	/* the C library's own: a program, or a library of its, may have something of that name */
	at_end = sl_resolve_beside(sl_resolve_next("gnu_get_libc_version"), "on_exit");
	if (!at_end || at_end(end_with, NULL))
		sl_preload_finish("exit");
}
