/* SPDX-License-Identifier: MIT */
/* What the files of agent/stacks share; other floors see stacks.h.  Longer than other files: it is the header of the floor. */
#pragma once

#include <signal.h>
#include <stdatomic.h>

#include "agent/stacks/python_layout.h"
#include "common/maps.h"
#include "common/text.h"

/*
 * Maps one thread's stacks to ids, so that a capture costs tens of nanoseconds.  The key is compared word by word.  An
 * entry carries the stamp and the sum that python.c gives, so that a code object's death makes it stale.  Owned by one
 * thread; a zeroed cache is empty.  Words are never freed: an entry that replaces another uses its words if they suffice,
 * and when the words run out all entries are dropped.
 */

#define SL_CACHE_BITS  11
#define SL_CACHE_WORDS 131072u

struct sl_cache_entry {
	uint64_t hash;
	uint64_t stamp, sum; /* of python.c; 0 for native stacks */
	uint32_t id;
	uint32_t at;	/* index of its first word; the owner's spare words follow the key's */
	uint32_t room;	/* words there, spare ones included; an entry that is free may have some too */
	uint16_t count; /* number of words; 0: the entry is free */
	uint16_t flags; /* part of the key: whether the stack was cut (0 for trails) */
};

struct sl_cache {
	uint32_t used; /* words in use */
	struct sl_cache_entry entry[1u << SL_CACHE_BITS];
	uint64_t words[SL_CACHE_WORDS];
};

/* One step of the hash of a key; its low bits are weak, so the high ones index. */
static inline uint64_t sl_cache_hash(uint64_t hash, uint64_t word)
{
	return (hash ^ word) * 0x9e3779b97f4a7c15u;
}

static inline bool sl_cache_same(const uint64_t *a, const uint64_t *b, uint32_t count)
{
	uint64_t differs = 0;
	uint32_t i = 0;

	for (; i + 4 <= count; i += 4)
		differs |= (a[i] ^ b[i]) | (a[i + 1] ^ b[i + 1]) | (a[i + 2] ^ b[i + 2]) | (a[i + 3] ^ b[i + 3]);
	for (; i < count; i++)
		differs |= a[i] ^ b[i];
	return !differs;
}

static inline struct sl_cache_entry *sl_cache_find(struct sl_cache *cache, uint64_t hash, const uint64_t *words, uint32_t count,
						   uint32_t flags)
{
	struct sl_cache_entry *entry = &cache->entry[hash >> (64 - SL_CACHE_BITS)];

	for (unsigned way = 0; way < 2; way++) {
		if (entry->hash == hash && entry->count == count && entry->flags == flags &&
		    sl_cache_same(&cache->words[entry->at], words, count))
			return entry;
		entry = &cache->entry[(hash >> (64 - SL_CACHE_BITS)) ^ 1];
	}
	return NULL;
}

/* An empty cache is not written to, so that its pages take no memory. */
static inline void sl_cache_forget(struct sl_cache *cache)
{
	if (cache->used)
		memset(cache->entry, 0, sizeof(cache->entry));
	cache->used = 0;
}

/*
 * Makes an entry for this key, which is not in the cache, with room for `spare` words.  Another stack may be forgotten for
 * it.
 */
static inline struct sl_cache_entry *sl_cache_add(struct sl_cache *cache, uint64_t hash, const uint64_t *words, uint32_t count,
						  uint32_t flags, uint32_t spare)
{
	struct sl_cache_entry *entry = &cache->entry[hash >> (64 - SL_CACHE_BITS)];
	uint32_t at, room;

	if (entry->count)
		entry = &cache->entry[(hash >> (64 - SL_CACHE_BITS)) ^ 1];
	if (entry->room < count + spare && cache->used + count + spare > SL_CACHE_WORDS)
		sl_cache_forget(cache);
	at = entry->at;
	room = entry->room;
	if (room < count + spare) {
		at = cache->used;
		room = count + spare;
		cache->used += room;
	}
	*entry = (struct sl_cache_entry){.hash = hash, .at = at, .room = room, .count = (uint16_t)count, .flags = (uint16_t)flags};
	atomic_signal_fence(memory_order_seq_cst); /* a handler that leaves by longjmp leaves no old entry with another's words */
	memcpy(&cache->words[at], words, count * sizeof(*words));
	return entry;
}

/*
 * How to get from a return address to the frame outside it, where that is simple: from .eh_frame, through the search table
 * that PT_GNU_EH_FRAME points to.  Simple is what compilers write for nearly every function.  For anything else (signal
 * frames, expressions, other registers) there is no rule, and libunwind is asked.  x86-64 only.
 */

enum sl_cfi_kind {
	SL_CFI_NONE,   /* not simple, or not known */
	SL_CFI_BY_SP,  /* the canonical frame address (CFA) is rsp + cfa; the return address lies below it */
	SL_CFI_BY_BP,  /* the CFA is rbp + cfa */
	SL_CFI_END,    /* the outermost frame: its return address is undefined */
	SL_CFI_SIGNAL, /* a signal handler returns to it: no simple rule leads to the interrupted frame outside */
};

#define SL_CFI_BP_KEPT INT16_MIN

struct sl_cfi_rule {
	int32_t cfa;
	int16_t bp; /* offset from the CFA at which the caller's rbp lies; SL_CFI_BP_KEPT: it is still in rbp */
	uint8_t kind;
};

/* The rule for the call that returns to `pc`.  Takes dl_iterate_phdr's lock. */
struct sl_cfi_rule sl_cfi_find(uintptr_t pc);

/* True: tables of an object were noise, or led out of the stack.  Libunwind, which believes any table, is not asked any more. */
extern _Atomic bool sl_cfi_lies SL_HIDDEN;

/*
 * Deaths of code objects, so that a cached stack is never taken for a new code object at the same address.  A hook replaces
 * PyCode_Type.tp_dealloc once and counts deaths per slot of a small hash table of addresses.  It counts only in slots that a cache
 * depends on.
 *
 * A cached stack keeps the sum of its codes' slots.  Counts only grow, so an equal sum means that none of its codes has died.
 * sl_codes_stamp changes with every counted death: while it stays the same, the sums stay the same.
 *
 * Exact because a code on the calling thread's stack is alive: if it is not the one that was cached, that one
 * was freed before, and its death was counted before the allocator could hand the address out again.
 */

extern _Atomic uint64_t sl_codes_stamp;

/*
 * Maps content to ids for the whole process: frames, stacks, modules, texts.  Lock-free and async-signal-safe.
 *
 * The table keeps a 128-bit hash instead of the content: 24 bytes an entry; a collision among a million stacks has a chance
 * of 2^-88.  Ids are dense, from 1.  A definition is in the log before its id is returned; two threads that meet the same
 * new content at the same instant may both write it, with the same id and the same bytes.
 */

struct sl_intern_key {
	uint64_t a, b;
};

#define SL_INTERN_KEY ((struct sl_intern_key){0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu})
void sl_intern_word(struct sl_intern_key *hash, uint64_t word);
void sl_intern_bytes(struct sl_intern_key *hash, const void *bytes, size_t count);

struct sl_intern_slot;

#define SL_INTERN_SEGMENTS 8

/* A zeroed table is empty. */
struct sl_intern {
	_Atomic uint32_t last; /* the id given out last */
	_Atomic(struct sl_intern_slot *) segment[SL_INTERN_SEGMENTS];
};

/* Writes the definition of `what` as `id`; false: it could not. */
typedef bool sl_intern_publish(uint32_t id, const void *what);

/* Returns the id of this content and publishes it if it is new.  0: no room, or publish failed (the next call tries again). */
uint32_t sl_intern(struct sl_intern *table, struct sl_intern_key hash, sl_intern_publish *publish, const void *what);

/* In a forked child: makes the table empty.  No other thread may be in it. */
void sl_intern_reset(struct sl_intern *table);

/*
 * The bounds of the calling thread's own stack, and how much is left of the stack that it runs on.  The thread needs its own stack
 * from the stack pointer on as long as it runs.  Any other stack may be gone at the next call: a coroutine's, or the one that began
 * it.
 */

extern __thread struct sl_own {
	uintptr_t begin, end; /* end 0: not known yet */
	bool grows;	      /* the first thread's: begin is as far as it was found mapped */
} sl_own __attribute__((tls_model("initial-exec")));

static inline __attribute__((always_inline)) bool sl_own_is_known(uintptr_t sp)
{
	return sp - sl_own.begin < sl_own.end - sl_own.begin;
}

/* Looks further than what is known.  Changes errno. */
bool sl_own_reaches(uintptr_t sp);

/* The address lies in the thread's own stack. */
static inline __attribute__((always_inline)) bool sl_own_has(uintptr_t sp)
{
	return SL_LIKELY(sl_own_is_known(sp)) || sl_own_reaches(sp);
}

/* True: the thread is on an alternate stack.  False too where a seccomp filter might forbid the question.  Changes errno. */
bool sl_own_on_alternate(stack_t *alternate);

/*
 * True: so much can be read below here, or will be once it is needed.  On an alternate stack, which seldom has a guard page: so
 * much of it is left.  Changes errno.
 */
bool sl_own_has_room(uintptr_t bytes);

/* The same, of the thread's own stack only.  False: the thread runs on another stack, whose end is unknown. */
bool sl_own_could_take(uintptr_t bytes);

/*
 * Stacks that a thread had before, found by their innermost frames.
 *
 * A trail is what a walk read: the innermost return addresses, the stack pointer behind them, and the words of the stack
 * that hold all further return addresses and each saved rbp that a frame is found by.  Where the innermost frames are the
 * same and no such word has changed, the stack is the same.  To compare the words costs a tenth of a walk, because no
 * comparison waits for another.
 *
 * Belongs to one thread; a zeroed one is empty.
 */

#define SL_TRAIL_FRAMES 9u /* innermost frames: six of ours, three of the program's */

struct sl_trail_start {
	uint64_t pc[SL_TRAIL_FRAMES], sp; /* sp: of the frame outside these */
	uint64_t bp;			  /* bp in that frame; not part of the key */
	uint64_t hash;
};

/*
 * Return addresses of the calling thread's stack, without libunwind where every frame has a simple rule (cfi.c).
 *
 * A frame is known by its return address, its stack pointer and, where an outer rule needs it, its rbp.  The outer frames follow
 * from these and from the words that hold the next return addresses and the saved rbp.  If one frame of the last walk is the same
 * and those words are unchanged, the outer frames are the same too.  So they are compared, not walked; an unchanged stack costs two
 * loads a frame.
 *
 * Belongs to one thread; a zeroed one is empty.  A walk that is left by longjmp leaves nothing wrong behind.  Nor does one
 * that a signal handler's walk interrupts: the handler's result is kept.
 */

#ifdef __x86_64__
#define SL_WALK_IS_HERE 1
#else
#define SL_WALK_IS_HERE 0 /* libunwind alone */
#endif

#define SL_WALK_FRAMES 288u
#define SL_WALK_RULES  8192u

struct sl_walk_frame {
	uintptr_t sp, bp;
	const volatile uintptr_t *bp_slot; /* where the frame inside has saved bp; NULL: it has not */
	const volatile uintptr_t *check;   /* bp_slot where bp matters, else the frame's own bp */
	bool bp_matters;		   /* a rule from here outward needs this frame's bp */
	struct sl_cfi_rule rule;
};

struct sl_walk_rule {
	uintptr_t pc;
	struct sl_cfi_rule rule;
};

struct sl_walk {
	uint64_t unloads; /* the owner's, at which the rules were read (sl_walk_renew); 0: there are no rules */
	unsigned max;	  /* `max` of the last walk */
	uint32_t first;	  /* first of the last walk's frames; they end at SL_WALK_FRAMES.  0: there was none */
	bool cut;	  /* there are more frames outside */
	bool alone;	  /* the owner's: nobody else can be asked, so a stack ends where it cannot be followed */
	bool foreign;	  /* the last walk was, or led, to a stack that is not the thread's own: nothing of it holds for the next */
	uint32_t turn;	  /* walks begun */
	uintptr_t guess;  /* SL_WALK_UNKNOWN: where libunwind would look for a frame, by rbp only; 0: unknown */
	uintptr_t signal; /* SL_WALK_UNKNOWN: where the handler returns to at whose frame the walk ended; 0: at another */
	uint32_t built;	  /* the turn that these frames belong to */
	uint64_t named;	  /* the owner's number for a stack, and above it the turn that built the stack */
	uintptr_t pc[SL_WALK_FRAMES];
	struct sl_walk_frame frame[SL_WALK_FRAMES];
	struct {
		uintptr_t pc[SL_WALK_FRAMES];
		struct sl_walk_frame frame[SL_WALK_FRAMES];
	} fresh; /* frames of the walk that is under way */
	struct sl_walk_rule rule[SL_WALK_RULES];
	struct sl_trail_start start; /* innermost frames of the walk that is under way */
	uint32_t started;	     /* turn of the walk that is under way */
	struct sl_cache trails;	     /* stacks that have a name */
};

enum sl_walk_end {
	SL_WALK_UNKNOWN, /* a frame has no simple rule: ask libunwind.  Where sl_cfi_lies, the stack ends there instead */
	SL_WALK_SAME,	 /* every frame is as it was at the last walk */
	SL_WALK_KNOWN,	 /* a stack that has a name already; its addresses are not given */
	SL_WALK_DONE,
};

struct sl_walked {
	uintptr_t *pcs; /* innermost first, the caller's own among them; valid until the next walk */
	uint32_t count; /* at most `max` */
	uint32_t built;
	uint32_t name; /* SL_WALK_KNOWN */
	bool gone;     /* the outer frames were on a stack that is gone: do not look for them */
};

enum sl_walk_end sl_walk(struct sl_walk *walk, unsigned max, struct sl_walked *walked);

/* Gives the stack that was just walked the owner's number; kept until another stack takes its place. */
static inline uint32_t sl_walk_name_of(const struct sl_walk *walk, const struct sl_walked *walked)
{
	return walk->named >> 32 == walked->built ? (uint32_t)walk->named : 0;
}

void sl_walk_name(struct sl_walk *walk, const struct sl_walked *walked, uint32_t name);

/* Whether `address`, of a frame of ours, lies in one of the frames from the calling function outward. */
enum sl_walk_way {
	SL_WALK_UNCLEAR, /* unknown: a frame without a simple rule came first */
	SL_WALK_INSIDE,
	SL_WALK_OTHER,	   /* another function's frame is there now */
	SL_WALK_ENTERED,   /* a signal handler's frame came first */
	SL_WALK_ELSEWHERE, /* the stack's end came first: it is another stack */
};
/*
 * *sp: where the last frame begins; a signal handler's is the ucontext_t of what was interrupted.  Of the frame that `address` lies
 * in: where that ends.
 */
enum sl_walk_way sl_walk_way_to(const void *address, uintptr_t *sp);

/* Forgets the rules, and with the next walk all names: objects were unloaded. */
void sl_walk_renew(struct sl_walk *walk, uint64_t unloads);

/* Forgets all names that were given. */
void sl_walk_forget(struct sl_walk *walk);

/* What a thread keeps between captures: its caches and room to work in.  Internal to agent/stacks. */

#define SL_STACKS_DEPTH_MAX 256u
#define SL_PYTHON_SEEN	    256u
#define SL_PYTHON_KNOWN	    1024u

/* A stack by the hash of its words (python_again.c). */
struct sl_python_known {
	uint64_t key[2];
	uint64_t gate; /* the stamp of python.c and the thread's `turn` for which it holds */
	uint32_t id;
};

struct sl_stacks_thread {
	struct sl_stacks_thread *next;	      /* list of all, for as long as the process lives */
	struct sl_stacks_thread *next_unused; /* list of those whose thread has ended */
	_Atomic bool unwinding;		      /* read by a forked child */
	bool busy;			      /* a capture or text is under way: a signal handler's capture gives 0 */
	int error;			      /* the program's errno meanwhile */
	uint8_t settled;		      /* native captures in a row whose stack was known */
	uint8_t unwinds;     /* native captures by libunwind, until it has allocated what it keeps for the thread */
	uint16_t idle;	     /* captures without Python since a library was opened; counted only as far as Python is looked for */
	bool missed;	     /* python_again.c did not know the stack: it wants to be told of the next one that the cache knows */
	uint32_t turn;	     /* how often all Python stacks were forgotten */
	uint32_t epoch;	     /* the recording whose ids the caches hold; sl_stacks_child makes another */
	uint32_t boundaries; /* runs of Python frames in the last capture; 0: unknown or none */

	uint64_t loads; /* sl_objects_loads when `idle` began at 0, plus one */

	uint64_t words[SL_STACKS_DEPTH_MAX];	 /* key of the stack being captured */
	uint32_t frames[SL_STACKS_DEPTH_MAX];	 /* ids of its frames */
	uintptr_t python_frames[SL_PYTHON_SEEN]; /* where those frames lay, for Python */
	void *pcs[SL_STACKS_DEPTH_MAX + 32];	 /* native frames, those of the agent first */

	char function[SL_FUNCTION_MAX], file[SL_TEXT_MAX]; /* utf-8, of the frame or text being defined */
	uint8_t map[8192];				   /* the definition being packed */

	_Alignas(64) struct sl_python_known python_ids[SL_PYTHON_KNOWN];
	struct sl_cache python, native;
	struct sl_walk walk;
};

/* Python stack of the calling thread, `depth` innermost frames; 0: none. */
uint32_t sl_python_capture(struct sl_stacks_thread *thread, unsigned depth);

/* The same for a stack that is in thread->python_ids; else SL_STACKS_UNKNOWN. */
uint32_t sl_python_again(struct sl_stacks_thread *thread, unsigned depth);
/* The stack from frame `first` on has this id, as long as the stamp of code objects is the same. */
void sl_python_learn(struct sl_stacks_thread *thread, uintptr_t first, unsigned depth, uint32_t id, uint64_t stamp);
/* Another thread or another recording: the ids and words of Python stacks are not its own. */
void sl_python_forget_known(struct sl_stacks_thread *thread);

/* As sl_stacks_argument, right after a capture that found a stack. */
bool sl_python_argument(const char *function, double *value, bool *read);
/* Looks for an interpreter in the process; cheap when it is known. */
void sl_python_find(void);
void sl_python_describe(struct sl_text *text);
/* Addresses on the C stack that lie in the frames of the evaluation loop, innermost first; at most max. */
unsigned sl_python_anchors(uintptr_t *anchors, unsigned max);
/* Where a loop has no anchors (3.9): the address of its function; else 0. */
uintptr_t sl_python_eval_function(void);
void sl_python_child(void);

uint32_t sl_native_capture(struct sl_stacks_thread *thread, unsigned depth);
void sl_native_start(void);
void sl_native_describe(struct sl_text *text);
void sl_native_child(void);

/*
 * Defines the modules that are not defined yet; to be called before an address in them is used.  Uses thread->map.  unloads: a
 * module is about to go, so what comes to its place comes later than now.  False: not done, because another thread is doing it.
 */
bool sl_modules_define(struct sl_stacks_thread *thread, bool unloads);
/* Adds to the hash those modules of the return addresses that came where another was.  False: not done, as above. */
bool sl_modules_hash(struct sl_intern_key *hash, void *const *pcs, uint32_t count);
void sl_modules_child(void);

/*
 * Python stack of the calling thread: its own chain of frames, read without the GIL and without a reference
 * count. No race: only this thread changes its chain, the chain stands still while the thread is inside our
 * call, and every frame holds its code object, whose names and line table never change.
 *
 * Two walks.  The warm one (python.c) collects one word per frame, which is the key into the thread's
 * cache.  The cold one (python_frames.c), after a miss, reads frames through a reader function and names
 * them; with a reader that survives bad pointers it is also the check (python.c) that the tables fit
 * the interpreter, made once before anything else is believed.  Internal to the python*.c files.
 */

/* The interpreter of the process; constant once it has been found. */
struct sl_python {
	struct sl_python_layout layout;
	void *(*thread_state)(void); /* PyGILState_GetThisThreadState */
	const uint8_t *runtime;
	uintptr_t code_type, str_type, bytes_type;
	uintptr_t eval_function; /* 3.9 */
	char version[40];
};

extern struct sl_python sl_python;
static const struct sl_python_layout *const where = &sl_python.layout;

/* The walks read structs by these tables only. */
static inline uintptr_t sl_python_word_at(uintptr_t object, uint32_t offset)
{
	uintptr_t value;

	memcpy(&value, (const void *)(object + offset), sizeof(value));
	return value;
}

static inline int32_t sl_python_int_at(uintptr_t object, uint32_t offset)
{
	int32_t value;

	memcpy(&value, (const void *)(object + offset), sizeof(value));
	return value;
}

static inline uint8_t sl_python_byte_at(uintptr_t object, uint32_t offset)
{
	return *(const uint8_t *)(object + offset);
}

#define SL_PYTHON_TAG_BITS 7u /* 3.14 keeps flags in the low bits of a frame's references */
#define SL_PYTHON_SHIM	   3u /* owner of frames that are not Python's: at least this, in every version that has owners */

/* Result of the warm walk; the words of the key lie in its caller's array. */
struct sl_python_walk {
	uint64_t hash;
	uint32_t count;
	uint32_t boundaries;
	bool truncated;
	bool unkeyed; /* does not fit into words: cannot be cached */
};

/* seen: the frames of the thread's last walk, used as a guess; any contents will do. */
void sl_python_walk(struct sl_python_walk *walk, uintptr_t frame, uint64_t *words, unsigned depth, uintptr_t seen[SL_PYTHON_SEEN]);

/*
 * Names the `count` frames from `first` on, without those that tracebacks omit.  codes: room for the code objects of all frames, or
 * NULL.  *lasting becomes false if one is no code object: the hook would miss its death.
 */
uint32_t sl_python_define(struct sl_stacks_thread *thread, uintptr_t first, uint32_t count, bool truncated, uint64_t *codes,
			  bool *lasting);
void sl_python_forget(void);

typedef bool sl_python_read(void *out, uintptr_t address, size_t bytes);

static inline bool sl_python_read_word(sl_python_read *get, uintptr_t object, uint32_t offset, uintptr_t *value)
{
	return get(value, object + offset, sizeof(*value));
}

struct sl_python_raw_frame {
	uintptr_t address;
	uintptr_t code; /* as the frame has it, so perhaps no code object */
	uintptr_t instr;
	bool entered; /* C entered the loop with this frame */
};

/* The Python frame at or above `address`; its address is 0 at the end.  False: unreadable. */
bool sl_python_frame(sl_python_read *get, uintptr_t address, struct sl_python_raw_frame *frame);

/* Where the instructions of a frame's code begin, as this thread runs it. */
uintptr_t sl_python_bytecode(const struct sl_python_raw_frame *frame);

/* Reads memory that may not be there: false instead of a signal. */
bool sl_python_read_carefully(void *out, uintptr_t address, size_t bytes);

/* Text of the program made fit for msgpack, whose strings are utf-8. */

/* Copy at most `max` bytes, whole characters; each byte that is not utf-8 becomes U+FFFD.  Returns the
 * length. */
size_t sl_utf8_clean(const char *text, size_t bytes, char *out, size_t max);
