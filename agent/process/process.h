/* SPDX-License-Identifier: MIT */
/*
 * Who and where this process is, its settings, and what the rest of the agent uses of the system.  It knows no other floor.
 * Longer than other files: it is the header of the floor.
 */
#pragma once

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/maps.h"
#include "common/ringfile.h" /* SL_REMOTE_RING: folder of the ring of a trace on such a file system */

/*
 * Settings of a recording, expanded from options.def.  Read once, at the first GPU call.  What the environment has not then has the
 * value of the moment when the library was loaded: servers drop their environment.
 */

/* `stacks` is a set of SL_STACKS_PYTHON and SL_STACKS_NATIVE (agent/stacks/stacks.h). */
enum sl_tensors_mode { SL_TENSORS_AUTO, SL_TENSORS_CPU, SL_TENSORS_OFF };
enum sl_labels_mode { SL_LABELS_AUTO, SL_LABELS_OFF };

/* One member per row of options.def, named by the row: text is borrowed from the environment, NULL unset. */
struct sl_options {
#define SL_OPTION_MEMBER_text						     const char *
#define SL_OPTION_MEMBER_size						     uint64_t
#define SL_OPTION_MEMBER_number						     uint64_t
#define SL_OPTION_MEMBER_flag						     bool
#define SL_OPTION_MEMBER_choice						     unsigned
#define OPTION(name, type, flag, letter, variable, def, unit, choices, help) SL_OPTION_MEMBER_##type name;
#include "agent/process/options.def"
#undef OPTION
};

enum sl_option_type { SL_OPTION_text, SL_OPTION_size, SL_OPTION_number, SL_OPTION_flag, SL_OPTION_choice };

/* A row of options.def; strings are "" where the row has none. */
struct sl_options_row {
	const char *name, *flag, *variable, *def, *unit, *choices, *help;
	enum sl_option_type type;
	char letter;
	unsigned short offset; /* offset of the member in struct sl_options */
};
extern const struct sl_options_row sl_options_table[];
extern const unsigned sl_options_count;

/* Store `text` as the row's member; false, and the member untouched, when it cannot be read as the row's type. */
bool sl_options_set(const struct sl_options_row *option, struct sl_options *options, const char *text);

/* The member as text, for the trace: borrowed, or written into `scratch`; NULL for text that is unset. */
const char *sl_options_text(const struct sl_options_row *option, const struct sl_options *options, char scratch[24]);

/* Copies the STORMLOG_ variables.  The copy has 8 kB; a variable without room is skipped.  Called once, at the library's load. */
void sl_options_keep(void);

/* A variable's value now, or for STORMLOG_ ones as it was kept; NULL: unset.  An empty one counts as set here. */
const char *sl_options_variable(const char *name);

/*
 * Fill from the process's environment; a value that cannot be read leaves the default and calls
 * bad(variable, value), unless bad is NULL.  No allocation.
 */
void sl_options_read(struct sl_options *options, void (*bad)(const char *variable, const char *value));

/*
 * Identity of this process: rank, run, host, pid and namespaces, command, settings; and where its files go.  Called once at the
 * first GPU call, by the thread that makes it: reads the environment and /proc by system calls, allocates nothing, uses no stdio.
 */

struct sl_process_identity {
	int rank, local_rank, world_size; /* -1: the environment names none */
	uint64_t pid, process_start;	  /* pid as getpid() says; start in clock ticks after boot */
	char boot_id[40];
	uint64_t started_ns, monotonic_ns;
	char directory[3072];	       /* absolute, placeholders replaced */
	char run_id[160], job_id[128]; /* job_id "" : none */
	char hip_devices[256];	       /* devices that HIP shows, as in the environment; "": all */
};

/* Identity from environment and /proc, rank groups, job, run id. */
void sl_process_identify(struct sl_process_identity *process, const struct sl_options *options);

/* False: this process is not to be recorded (disabled, rank not in the list, argv[0] does not match). */
bool sl_process_wanted(const struct sl_process_identity *process, const struct sl_options *options);

/* mkdir -p of process->directory, mode 0700 for what is made.  0 or errno. */
int sl_process_make_directory(const struct sl_process_identity *process);

/*
 * Writes the header map of doc/trace-format.md into out.  Returns its bytes, 0 when it does not fit.  ring: the header's `ring`;
 * file: 1 for the first of the process, 2, ...
 */
size_t sl_process_header(void *out, size_t size, const struct sl_process_identity *process, const struct sl_options *options,
			 const char *ring, unsigned file);

/*
 * CLOCK_MONOTONIC in nanoseconds, cheaper than from the system: stamps are half of what an event costs.
 *
 * Where the kernel itself keeps time by the processor's counter, the time is a line over that counter.  (The kernel has then found
 * the counter invariant and the same on all processors.) All threads use one line, so it orders them as exactly as the counter
 * does.  The writer bends the line ten times a second to follow the system's clock, from which it differs by tens of nanoseconds;
 * it never jumps.
 *
 * clock_gettime is called instead on other machines, before there is a line, and far from the writer's last look (the machine
 * slept, or the process continues on another one).  It is called for good once counter and clock have gone apart or the kernel has
 * given the counter up.
 */

/*
 * Ticks, some seconds' worth.  A reading further than this from the line's beginning, or before it, is not trusted: the
 * writer has not kept the line up to date.
 */
#define SL_CLOCK_REACH (1ull << 34)

struct sl_clock_line {
	_Atomic uint64_t rate; /* nanoseconds a tick, times 2^32; 0: there is no line */
	_Atomic uint64_t base_ticks, base_ns;
};

/* Lies in the pages that a forked child finds empty. */
struct sl_clock {
	_Atomic uint64_t turn; /* the line in use is line[turn % 2]; the other one is written meanwhile, so nobody waits */
	struct sl_clock_line line[2];

	/* Used by the writer alone. */
	uint64_t seen_ticks, seen_ns;
	uint64_t step_ns;  /* until it looks again */
	uint64_t asked_ns; /* when the kernel was last asked whether it keeps time by the counter */
	bool refused;
};

/* Writer, now and then: follow the system's clock. */
void sl_clock_follow(struct sl_clock *clock);

uint64_t sl_clock_system(void);

#ifdef __x86_64__

static inline uint64_t sl_clock_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

/* Waits for the instructions before it; otherwise the processor may read the counter earlier. */
static inline uint64_t sl_clock_ticks_after(void)
{
	__asm__ volatile("lfence" : : : "memory");
	return sl_clock_ticks();
}

static inline uint64_t sl_clock_past(const struct sl_clock_line *line, uint64_t ticks)
{
	return ticks - atomic_load_explicit(&line->base_ticks, memory_order_relaxed);
}

static inline uint64_t sl_clock_at(const struct sl_clock_line *line, uint64_t past)
{
	return atomic_load_explicit(&line->base_ns, memory_order_relaxed) +
	       (uint64_t)((unsigned __int128)past * atomic_load_explicit(&line->rate, memory_order_relaxed) >> 32);
}

/* after: the stamp is not taken before what precedes it in the program is done; false: not after what follows. */
static inline uint64_t sl_clock_stamp(const struct sl_clock *clock, bool after)
{
	for (;;) {
		uint64_t turn = atomic_load_explicit(&clock->turn, memory_order_acquire), past, now_ns;
		const struct sl_clock_line *line = &clock->line[turn % 2];

		if (SL_UNLIKELY(!atomic_load_explicit(&line->rate, memory_order_relaxed)))
			return sl_clock_system();
		past = sl_clock_past(line, after ? sl_clock_ticks_after() : sl_clock_ticks());
		now_ns = sl_clock_at(line, past);
		atomic_thread_fence(memory_order_acquire);
		if (SL_LIKELY(atomic_load_explicit(&clock->turn, memory_order_relaxed) == turn))
			return SL_LIKELY(past < SL_CLOCK_REACH) ? now_ns : sl_clock_system();
	}
}

#else

static inline uint64_t sl_clock_stamp(const struct sl_clock *clock, bool after)
{
	return sl_clock_system();
}

#endif

/* A stamp for the beginning of what follows: not later than that. */
static inline uint64_t sl_clock_before(const struct sl_clock *clock)
{
	return sl_clock_stamp(clock, false);
}

/* A stamp for the end of what precedes: not earlier than that. */
static inline uint64_t sl_clock_after(const struct sl_clock *clock)
{
	return sl_clock_stamp(clock, true);
}

/*
 * State of the recording: one struct for the process and a small one per thread.  The first lies in pages that the kernel empties
 * in a forked child (MADV_WIPEONFORK), so that a child, whatever kind of fork made it, has no recording yet.
 */

struct sl_frame;
struct sl_producer;
struct sl_ring;
struct sl_trace_store;

enum sl_agent_phase { SL_PHASE_IDLE, SL_PHASE_STARTING, SL_PHASE_RUNNING, SL_PHASE_LATE, SL_PHASE_OFF };

struct sl_agent {
	/*
	 * Not 0 while this process records, and different in every process.  A thread whose own copy equals it is attached
	 * to this recording: the one comparison on the path of a call.
	 */
	_Atomic uint64_t generation;
	_Atomic uint32_t phase;
	_Atomic uint32_t stacks; /* stacks taken now: those of options.stacks, none while asleep */
	struct sl_clock clock;

	/* Every call reads the members above; those below are written now and then, so they lie on other cache lines. */
	_Alignas(64) _Atomic uint32_t wake;  /* futex: the writer has something to do at once */
	_Atomic uint32_t urgent;	     /* a call failed, and the ring may be lost with the node */
	_Atomic uint32_t flush, flushed;     /* how many syncs were asked for; futex: how many are done */
	_Atomic uint32_t finish;	     /* the writer is to write what waits, then the footer */
	_Atomic uint32_t finished;	     /* futex: both are written */
	_Atomic uint32_t asked, settled;     /* how often the writer was asked to open what it needs; futex: up to which it has */
	_Atomic uint32_t in_vain;	     /* a thread waited too long for this one: nobody waits until it is settled */
	_Atomic uint64_t writing_since_ns;   /* time at which the writer entered a system call on the file; 0: it is in none */
	_Atomic uint32_t writer;	     /* futex: kernel id of the writer's thread; 0: there is none */
	_Atomic uint32_t parking;	     /* this and the next two: writer_thread.c */
	uint32_t last_writer;		     /* the thread that runs, or ran last */
	void *writer_stack;		     /* NULL: the C library's stack */
	_Atomic uint32_t passes;	     /* complete passes of the writer over the ring */
	_Atomic uint64_t frames;	     /* written so far: the writer's progress */
	_Atomic uint32_t blocks;	     /* those frames that hold events */
	_Atomic uint32_t exec_by;	     /* futex: thread whose exec is under way; 0: none */
	_Atomic uint64_t left_ns;	     /* the program's last thread began to end; 0: it has not */
	_Atomic uint64_t forked_ns;	     /* end of the last fork before which the writer ended; 0: none */
	bool dry;			     /* a dry run: each block's tensor is told */
	bool exec_failed;		     /* an exec failed, which was said; of the thread in exec_by */
	bool unwelcome;			     /* it became a user who may not write in the trace's folder, which was said */
	_Atomic uint32_t in_exec;	     /* futex: the ring's file was removed for an exec that may fail */
	_Atomic uint32_t stalled;	     /* the disk refuses or hangs: do not wait for it */
	_Atomic uint32_t late, late_written; /* events that came after the footer; futex: those of them that are in the file */
	const char *how;		     /* why the recording was told to finish */
	_Atomic uint32_t status;	     /* 1 + the process's exit status; 0: not known */
	_Atomic bool no_writer;		     /* no thread could be made, or the writer is the last thread and ends the process */
	struct sl_options options;
	struct sl_process_identity process;
	struct sl_ring *ring; /* these two lie in the same pages; NULL until the recording starts */
	struct sl_trace_store *store;
};

extern struct sl_agent *_Atomic sl_agent SL_HIDDEN; /* never NULL */
extern struct sl_agent sl_agent_idle SL_HIDDEN;	    /* until the first GPU call */

#define SL_AGENT_WORKS 8u /* depth of works in works: a question amid other work, in a handler that interrupted such work */

struct sl_agent_thread {
	/* A block event reads these, on one cache line. */
	_Alignas(64) uint64_t generation; /* generation of the recording that `ring` belongs to */
	uint64_t steady;		  /* the recording for which all that is rare at a block event has been done here */
	struct sl_producer *ring;
	struct sl_frame *top; /* innermost open call */
	uint32_t inside;      /* > 0: the agent's own work, nothing is recorded */
	uint32_t label;	      /* text of the innermost range, while has_label */
	bool has_label;
	bool steady_host, steady_device; /* kinds of blocks that `steady` holds for */

	uint64_t open_seq;	/* slot number of the last call that was not nested */
	bool writer;		/* this is the writer's thread, which is the last one, and the process ends on it */
	uint32_t loader_uses;	/* depth of sl_objects_use_begin() */
	bool forks;		/* it is in fork() */
	bool parks;		/* the writer ended before that fork() */
	uint8_t pauses;		/* forks for which it has the writer pause */
	uint32_t ooms;		/* calls that were recorded as out of memory */
	uint64_t device_set;	/* what known.c knows of the device that it set last */
	uint64_t kernel;	/* kernel that this thread looked up last and has yet to launch, which loads it; 0: none */
	uint32_t refused;	/* calls in a row that were not recorded because of `inside` */
	uint64_t refused_at;	/* the thread's next slot number at the last of them */
	uintptr_t inside_check; /* return address in the outermost work's frame: tells whether that frame is still whole */
	uintptr_t inside_at[SL_AGENT_WORKS]; /* the frames in which works began, the outermost first */
};

/* initial-exec: one load relative to the thread pointer, and no call that may allocate. */
extern __thread struct sl_agent_thread sl_thread __attribute__((tls_model("initial-exec")));

/* The agent's own work begins and ends in the calling function. */
#define sl_agent_begin(thread) sl_agent_begin_at(thread, (uintptr_t)__builtin_frame_address(0))

static inline __attribute__((always_inline)) void sl_agent_begin_at(struct sl_agent_thread *thread, uintptr_t frame)
{
	uint32_t depth = thread->inside;

	if (!depth)
		thread->inside_check = ((const uintptr_t *)frame)[1];
	if (depth < SL_AGENT_WORKS)
		thread->inside_at[depth] = frame;
	thread->inside = depth + 1;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void sl_agent_end(struct sl_agent_thread *thread)
{
	atomic_signal_fence(memory_order_seq_cst);
	if (SL_LIKELY(thread->inside)) /* the work was taken for unwound (sl_unwound_inside) */
		thread->inside--;
}

/*
 * Put around questions to the driver and the walk of a stack: hooked calls in between are the agent's own, unless a signal
 * handler makes them, and errno stays the program's.  Nothing that a handler's call needs is half done meanwhile.
 */
static inline __attribute__((always_inline)) int sl_agent_work_begin(void)
{
	sl_agent_begin(&sl_thread);
	return errno;
}

static inline void sl_agent_work_end(int saved)
{
	errno = saved;
	sl_agent_end(&sl_thread);
}

/*
 * The calls that go up, to the floor that knows the order of a start: life/preload.c puts its one struct into the section sl_life,
 * from where the linker's symbol leads to it.
 */
struct sl_agent_life {
	bool (*attach)(void);
	bool (*unpark)(void);
	void (*late)(void);
	void (*left)(int status);
};

extern const struct sl_agent_life sl_agent_life __asm__("__start_sl_life") SL_HIDDEN;

/* Attach the calling thread to the recording, starting that if it has not begun.  False: not recording. */
static inline bool sl_agent_attached(void)
{
	uint64_t generation = atomic_load_explicit(&sl_agent->generation, memory_order_acquire);

	return SL_LIKELY(generation && sl_thread.generation == generation) || sl_agent_life.attach();
}

/* Have the writer work again where it is parked.  False: not now, ask at the next call.  Any thread. */
static inline bool sl_agent_unpark(void)
{
	return sl_agent_life.unpark();
}

/* CLOCK_MONOTONIC in nanoseconds, read after all that precedes the call is done. */
uint64_t sl_agent_now(void);

/* The recording as 32 bits, never 0.  It stands beside ids that are kept, so that ids of another recording are not used. */
static inline uint32_t sl_agent_tag(void)
{
	uint64_t generation = atomic_load_explicit(&sl_agent->generation, memory_order_relaxed);

	return (uint32_t)(generation ^ generation >> 32) | 1;
}

/* futex: sleep while *word is `value`, at most timeout_ns; wake all sleepers. */
void sl_agent_sleep(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns);
void sl_agent_wake(_Atomic uint32_t *word);

/*
 * While an exec may fail: waits for that, since the ring is copied into a new file then.  Called where room in the ring is looked
 * for, which all threads do after sl_ring_remind(), and for definitions.
 */
void sl_agent_await_exec(void);

/* Wakes the writer, even if it is just about to sleep. */
void sl_agent_call_writer(struct sl_agent *agent);

/*
 * Wait until the writer has opened what it was asked for: at the start the trace's header and libunwind, with which native stacks
 * begin, later NVML for a device that comes into use.  Its files have the lowest free numbers while it opens them, on which a
 * program may count between two calls of its own.  The wait is short where the writer sleeps, since it may need a lock that this
 * thread holds, or the trace's disk; it is longer while it is at work or waits for a processor.  `ask`: there is something to open.
 */
void sl_agent_settle(void);
void sl_agent_ask(void);

/* One loaded object's dynamic section, read in place: symbols by hash, versions, needed libraries. */

struct sl_elf_object {
	ElfW(Addr) base;
	const ElfW(Dyn) * dynamic;
	const ElfW(Sym) * symbols;
	const char *strings;
	size_t strings_size;
	const uint32_t *gnu_hash, *sysv_hash;
	const ElfW(Half) * versions;
	const ElfW(Verdef) * defined;
	const ElfW(Verneed) * needed;
	const char *soname; /* NULL: none */
};

/* A name with its hashes, so that they are computed once for all objects. */
struct sl_elf_name {
	const char *text, *version; /* version NULL: the default one */
	uint32_t gnu, sysv;
};

struct sl_elf_name sl_elf_name(const char *text, const char *version);

/* False: no symbol table to look in. */
bool sl_elf_read(struct sl_elf_object *object, ElfW(Addr) base, const ElfW(Dyn) * dynamic);

/* Address of the defined function or object, NULL if the object does not define it in the version asked for. */
void *sl_elf_find(const struct sl_elf_object *object, const struct sl_elf_name *name);

/* The version in which the object asks for `name` from others; NULL: none, or it does not ask. */
const char *sl_elf_wanted_version(const struct sl_elf_object *object, const char *name);

/*
 * Our own files in a program that may close any descriptor.  Each file is remembered by device and inode and checked before use, so
 * that we never write into a file of the program.
 */

/*
 * open, close, pwrite as system calls: the C library's are cancellation points, and the program's threads must not be cancelled
 * inside us.  fd, or -1 and errno; restarts on EINTR.
 */
int sl_file_open(const char *path, int flags);
void sl_file_close(int fd);

/* True: a file may grow to `bytes`. Beyond RLIMIT_FSIZE an attempt would be a SIGXFSZ in the program. */
bool sl_file_fits(uint64_t bytes);

/* none: this thread has SIGXFSZ blocked from now on, so that sl_file_fits is true and the write itself fails. */
void sl_file_no_signals(bool none);

#define SL_FILE_OURS 64 /* more descriptors than we ever have open */

/* True: so many descriptors may be opened. */
bool sl_file_can_open(unsigned count);

/*
 * Moves fd to a number that the program cannot use, beyond its RLIMIT_NOFILE, or, where that cannot be raised, to a high one,
 * away from programs that close or dup2 low descriptors, and never a standard one.  Closes fd itself.  -1: there is none.
 */
int sl_file_move_high(int fd);

/* False: fd is not open. sl_file_is: also false if it is another file, or one that was removed. */
bool sl_file_identity(int fd, uint64_t *device, uint64_t *inode);
bool sl_file_is(int fd, uint64_t device, uint64_t inode);

/*
 * Opens a file again that the program closed, at a number as above.  -1 and errno: ESTALE where it is another file now, or was
 * removed or exchanged meanwhile.
 */
int sl_file_reopen(const char *path, uint64_t device, uint64_t inode);

/* Closes fd if it is still that file, removed or not: the program may have closed it and opened another one. */
void sl_file_close_own(int fd, uint64_t device, uint64_t inode);

/*
 * A write lock on the whole file: of this process alone, not of a forked child, and gone with the process.  Closing any
 * descriptor of the file would drop it.
 */
void sl_file_lock(int fd);

/* Writes all of it at offset `at`. 0 or errno; restarts on EINTR. */
int sl_file_write(int fd, const struct iovec *parts, int count, uint64_t at);

/* Removes a file, by a system call as well, because a sanitizer's runtime reads the paths given to the C library. 0 or errno. */
int sl_file_remove(const char *path);
/* Reads the target of a link, without a terminator.  Its bytes, or -1 with errno. */
ssize_t sl_file_link(const char *path, char *text, size_t size);

/* Reads at most size - 1 bytes of a small file and adds a terminator.  The bytes read, or -1 with errno. */
ssize_t sl_file_read(const char *path, char *text, size_t size);

/* STORMLOG_ONLY: a glob that is matched here, because fnmatch() may allocate, and the first GPU call may come from an allocator. */

/* True: the glob (* ? [a-z] [!a-z]; bytes, not characters) matches the whole path or its last component. */
bool sl_filter_matches(const char *glob, const char *path);

/* True: it has what only regular expressions have, so the user meant one. */
bool sl_filter_is_regex(const char *glob);

/*
 * Memory of a process and of the cgroup that limits it, from /proc and /sys.  System calls only; any thread.  An unknown figure
 * is SL_HOSTMEM_UNKNOWN.
 */

#define SL_HOSTMEM_UNKNOWN UINT64_MAX

struct sl_hostmem {
	uint64_t rss_bytes, vm_bytes;
	/* of the cgroup with the tightest limit above us; limit unknown: no cgroup has one */
	uint64_t cgroup_bytes, cgroup_limit_bytes, cgroup_peak_bytes;
	uint64_t oom_kills; /* kills in that cgroup since it was made */
	uint64_t cgroup_id; /* inode of its folder: another one since the process was moved */
};

struct sl_hostmem_cgroup {
	const struct sl_hostmem_layout *layout;
	char folder[1024];
	uint64_t id;
};

struct sl_hostmem_process {
	char proc[32];						   /* "/proc/PID" */
	long (*read)(const char *path, char *buffer, size_t size); /* as sl_procfile_read */
	_Atomic unsigned state; /* of its cgroup: 0 not looked for yet, 1 being looked for, 2 found, 3 there is none */
	struct sl_hostmem_cgroup cgroup[2];
	_Atomic unsigned at; /* index of the one in use; a new one is written into the other */
	uint64_t named;	     /* hash of /proc/PID/cgroup when it was found */
};

extern struct sl_hostmem_process sl_hostmem_self;

void sl_hostmem_read(struct sl_hostmem_process *of, struct sl_hostmem *memory);
/* Looks whether the process was moved to another cgroup, which is read from then on.  One thread alone, ten times a second. */
void sl_hostmem_follow(struct sl_hostmem_process *of);

/* The `sample` definition of these figures; and one figure added to a definition, left out if it is unknown. */
struct sl_definition sl_hostmem_sample(void *bytes, size_t size, const struct sl_hostmem *memory, uint64_t now_ns);
void sl_hostmem_add(struct sl_definition *map, const char *key, uint64_t value);

/* Memory of the machine by /proc/meminfo, and what of it a program could still get.  False: it cannot be read. */
bool sl_hostmem_machine(uint64_t *total_bytes, uint64_t *available_bytes);

/* RLIMIT_AS; unknown: none. */
uint64_t sl_hostmem_limit(void);

/* Forgets our own cgroup, which the next read looks for again. */
void sl_hostmem_child(void);

/*
 * Who a process is among the processes of its job, from the environment and /proc.  process.c, which fills the trace's
 * header, and the launcher, which names the run, must agree on it.  No allocation, no stdio.
 */

/* -1: the environment names none. */
struct sl_identity_rank {
	int rank, local_rank, world_size;
	const char *variable; /* that has the rank; NULL: none */
};

/*
 * STORMLOG_RANK and STORMLOG_WORLD_SIZE, else the first complete group of RANK, OMPI_COMM_WORLD_*, SLURM_* (rank and size;
 * a missing local rank is the rank, as in Python Stormlog), else of PMI, Flux, JSM, PMIx.  A group with impossible numbers
 * is passed over, and so is Slurm's outside srun's steps, which Python Stormlog takes for rank 0 of the job's tasks.
 */
struct sl_identity_rank sl_identity_rank(void);

/* STORMLOG_JOB_ID, else the job as the scheduler names it; "" none. */
void sl_identity_job(char *out, size_t size);

/* HIP_VISIBLE_DEVICES, else CUDA_VISIBLE_DEVICES, which HIP reads too; "" neither. */
void sl_identity_hip_devices(char *out, size_t size);

/*
 * The run, if the environment names one for all its processes: STORMLOG_RUN_ID, a scheduler's job step, torchrun's run.  False, and
 * out "": it names none.
 */
bool sl_identity_run_named(char *out, size_t size);

#define SL_IDENTITY_LIBRARY "libstormlog_preload" /* as the file of this library is called in /proc/PID/maps and in LD_PRELOAD */

/*
 * Run id for an environment without one: host, boot, and pid and start of a process.  Where a launcher marked the processes of
 * the run, the launcher is that process.  Else the topmost ancestor of `pid` that has the library is, or `pid` itself.
 * pid 0: this process.
 */
void sl_identity_run_fallback(char *out, size_t size, const char *host, const char *boot_id, uint64_t pid);

/*
 * For a launcher: the environment names the run for it and its siblings (srun stormlog-run, mpirun stormlog-run), so it
 * must not make up a name.
 */
bool sl_identity_run_shared(void);

/* How often torchrun or the scheduler restarted the job; -1: unknown. */
int sl_identity_restart(void);

/*
 * Blocks the program's signals on this thread for a moment: a handler may leave by longjmp, and our work would stay half done.
 * By system call: sanitizers and the C library wrap sigprocmask.
 */

#define SL_MUTE_BIT(signal) (1ull << ((signal)-1))

/* The C library's own.  By the second setuid changes all threads: it would wait for ever for one that is made now, muted. */
#define SL_MUTE_CANCEL 32
#define SL_MUTE_SETXID 33

/*
 * Faults of the thread's own work for which the program has a handler.  The kernel ends a process that blocks them then, and the
 * program may live by them: a filter whose system calls a broker makes (SIGSYS), pages or a time stamp counter that it lets fault.
 */
extern _Atomic uint64_t sl_mute_handled __attribute__((visibility("hidden")));

/* Asks the kernel for these handlers, or is told of all handlers that the program has. */
void sl_mute_look(void);
void sl_mute_tell(uint64_t handled);

struct sl_mute {
	uint64_t before; /* as the kernel has it: a bit for each of 64 signals */
};

static inline struct sl_mute sl_mute_begin(void)
{
	uint64_t others = ~(SL_MUTE_BIT(SL_MUTE_SETXID) | atomic_load_explicit(&sl_mute_handled, memory_order_relaxed));
	struct sl_mute mute = {0};

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &others, &mute.before, sizeof(others));
	return mute;
}

static inline void sl_mute_end(const struct sl_mute *mute)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mute->before, NULL, sizeof(mute->before));
}

/* File systems that a ring must not lie on: their pages may hang, be out of reach when the node dies, or find no room. */

/* Why the ring of a trace in this folder lies in SL_REMOTE_RING, in words; NULL: it lies beside the trace. */
const char *sl_netfs_why(const char *folder);

/* Name of the file system of the folder ("NFS", "ext4"); NULL: not in our list. */
const char *sl_netfs_name(const char *folder);

/*
 * Files of /proc and /sys that are read repeatedly.  They are kept open, because a program may forbid itself to open files
 * (seccomp).  Their descriptors are 1000 and above, as for our own files, because a program may expect certain low numbers.  If
 * few descriptors are allowed, and none may lie beyond the limit, nothing is kept open.  A file that was not there is not sought
 * again, unless it is one of /proc.
 */

/* The same as sl_procfile_read.  Any thread. */
long sl_open_proc_read(const char *path, char *buffer, size_t size);

/* Writer: looks at the process for the questions below.  another: true if we have a thread beside the writer. */
void sl_open_proc_look(bool (*another)(void));

/*
 * The program has put a seccomp filter on itself since the recording began: the writer no longer opens, removes or maps files
 * (agent/README.md, Sandboxes).
 */
bool sl_open_proc_sandboxed(void);

/* The signals for which the program has handlers, as of the last look: number N is bit N - 1.  All, where nobody says. */
uint64_t sl_open_proc_handled(void);

/* Writer: the signals that wait for it alone.  A new writer begins first, since what is kept is of the one before. */
void sl_open_proc_writer_begin(void);
uint64_t sl_open_proc_own_pending(void);

/* There were filters when the recording began: a container's, or the program's own. */
bool sl_open_proc_filtered(void);

/*
 * True: the calling thread has a filter that the first thread has not.  So would a thread that it makes, and the program could no
 * longer give all its threads one filter (SECCOMP_FILTER_FLAG_TSYNC).  Asked by the one thread that is about to make the writer.
 */
bool sl_open_proc_confined_alone(void);

/* True: the process has only our threads.  The first thread, which the kernel lists until the end, and all others have ended. */
bool sl_open_proc_deserted(void);

/*
 * How the last thread left, as wait() tells it: by the system call, or killed alone, as a filter does.  From Linux 5.18 on the
 * process ends so.  Known for the first thread only; 0, as from the C library, if others outlived it.
 */
int sl_open_proc_last_status(void);

/* Called when a recording begins: forgets what a forked child inherited; filters that exist already count as the container's. */
void sl_open_proc_begin(void);

/*
 * Memory by mmap, because the program's malloc must not be called.  A program may lock all memory that it maps later (mlockall),
 * within a small allowance.  Our memory stays unlocked and takes none of the allowance.
 */

#define SL_PAGE 4096u /* the smallest that there is */

/* Zeroed pages that live as long as the process, from mmap; NULL if refused.  Safe on the path of a call. */
void *sl_pages_map(size_t bytes);

/* Maps bytes of a file from `from` on, shared with it; NULL if refused. */
void *sl_pages_map_file(size_t bytes, int fd, size_t from);

/* The program has locked memory: unlock what was mapped here, and lock nothing later. */
void sl_pages_unlock(void *pages, size_t bytes);

/* True: the program locks what is mapped, as far as is known. */
bool sl_pages_are_locked(void);

/* True: the word at `address`, or around it, can be read, which the program may make untrue at any time.  Changes errno. */
bool sl_pages_readable(uintptr_t address);

/*
 * Small files of the kernel, read whole by system calls: no malloc, no stdio, no cancellation point, and not
 * through the C library's open, which the job may have interposed.  errno is left as it was.
 */

/* Reads at most size - 1 bytes of the file and terminates them; returns their number, or -1 (buffer then empty). */
long sl_procfile_read(const char *path, char *buffer, size_t size);

/* Reads a file that is one decimal number; false: it is not ("max" is none). */
bool sl_procfile_number(const char *path, uint64_t *number);

/*
 * Finds the first line that starts with `name` and gives what follows, blanks skipped, cut to size - 1 bytes.  Takes little
 * stack.
 */
bool sl_procfile_find(const char *path, const char *name, char *line, size_t size);

/* What follows `name` at the start of a line, blanks skipped; NULL when no line starts so. */
const char *sl_procfile_line(const char *content, const char *name);

/* A decimal number at the start of `text`; false when there is none. */
bool sl_procfile_digits(const char *text, uint64_t *number);

/* State of process or thread `pid`: 'R' runs or could, 'S' sleeps...; 0: there is no such process. */
char sl_procfile_state(uint64_t pid);

/* Parent of process `pid`; 0: there is none, or no such process. */
uint64_t sl_procfile_parent(uint64_t pid);

/* The file of process `pid` holds the text.  False also where we may not read it. */
bool sl_procfile_holds(uint64_t pid, const char *file, const char *text);

#define SL_PROCFILE_HOST 4026531836u /* the host's pid namespace: PROC_PID_INIT_INO, fixed since Linux 3.8 */

/* Number of the pid namespace of process `pid`, 0: of this process; 0: not known. */
uint64_t sl_procfile_namespace(uint64_t pid);

/*
 * Start of process `pid` in clock ticks after boot (/proc/PID/stat, field 22); 0: there is no such process.  pid 0: of this
 * process, whatever it is called where /proc was mounted (a pid namespace without a /proc of its own).
 */
uint64_t sl_procfile_start(uint64_t pid);

/* Arguments that look like secrets do not go into a trace. */

#define SL_REDACTED "***"

/* What an argument says about the next one: it is a secret, or is one if it has the form name:password (curl -u). */
enum sl_redact_follows { SL_REDACT_NOTHING, SL_REDACT_SECRET, SL_REDACT_USER };

/*
 * Copies `argument` into out and replaces its secret parts by SL_REDACTED.  These are the value of --name=value or --name VALUE
 * whose name looks like a key's, the user of a URL, secrets in its query, and text like an access token.  Errs on the side of
 * masking. follows: SL_REDACT_NOTHING for the first argument, then as the last call left it.
 */
void sl_redact_argument(const char *argument, enum sl_redact_follows *follows, char *out, size_t size);

/* The key argv of a header: the arguments in a file of /proc, redacted.  One thread. */
void sl_redact_pack(struct sl_definition *out, const char *cmdline);

/* Describes the machine, for the header of its trace: from small files of the kernel, by system calls.  No GPU is asked. */

/*
 * A map of texts: kernel, architecture, distribution (of this process's root), cpus, memory_bytes, nvidia_driver, amdgpu; what is
 * not known is left out.
 */
void sl_system_pack(struct sl_pack *pack);

/* Writes the part of a trace's header that says what the numbers in events mean.  The agent and stormlog-attach write the same. */

/* Adds the keys and values of that part. */
void sl_tables_pack(struct sl_definition *map);
