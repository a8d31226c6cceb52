/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Python frames of the thread that is in a call.  No race, for the reasons of agent/stacks/inner.h: the thread stands still
 * inside its call, and its frames hold their code objects.  What a code object says is read by the collector (lines.c).
 * Part of seen.bpf.c.
 */
#define SHIM 3 /* owner of frames that are not Python's: at least this (SL_PYTHON_SHIM) */

enum { FRAME_OBJECTS, ENTRY_FLAGS, SHIM_FRAMES }; /* enum sl_python_style */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << SL_SEEN_SLOT_BITS);
	__type(key, __u32);
	__type(value, struct sl_seen_deaths);
} deaths SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 21); /* read out of turn, when a name is missing */
} dead SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8[SL_SEEN_TASK]);
} task SEC(".maps");

/* Runs once, in the collector: copies the kernel's structure of the thread, in which the collector looks for a value of its own. */
SEC("uprobe")
int task_is(struct registers *at)
{
	__u64 from = bpf_get_current_task();
	__u32 zero = 0;
	__u8 *copy = bpf_map_lookup_elem(&task, &zero);

	if (!copy)
		return 0;
	for (int i = 0; i < SL_SEEN_TASK; i += 256)
		bpf_probe_read_kernel(copy + i, 256, (void *)(from + i));
	return 0;
}

static __always_inline __u64 word(__u64 address)
{
	__u64 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (void *)address);
	return value;
}

/* Copies a piece as far as it can be read, which may be only to the end of its page. */
static __always_inline void copy_piece(struct sl_seen_death *death, const int i, const __u32 bytes, __u64 from)
{
	__u32 page = SL_SEEN_PAGE - (from & (SL_SEEN_PAGE - 1));
	__u8 *to = death->data + i * SL_SEEN_PIECE;

	death->piece[i].address = from;
	death->piece[i].bytes = 0;
	if (!bpf_probe_read_user(to, bytes, (void *)from))
		death->piece[i].bytes = bytes;
	else if (page < bytes && !bpf_probe_read_user(to, page, (void *)from))
		death->piece[i].bytes = page;
}

static __always_inline void say_death(__u32 pid, __u64 code, __u64 count)
{
	struct sl_seen_process *process = bpf_map_lookup_elem(&processes, &pid);
	struct sl_seen_death *death = process ? bpf_ringbuf_reserve(&dead, sizeof(*death), 0) : 0;

	if (!death)
		return;
	death->kind = SL_SEEN_DEATH;
	death->pid = pid;
	death->code = SL_SEEN_LINE(code, count);
	copy_piece(death, 0, SL_SEEN_PIECE, code);
	copy_piece(death, 1, SL_SEEN_PIECE, word(code + process->python.function));
	copy_piece(death, 2, SL_SEEN_PIECE, word(code + process->python.file));
	copy_piece(death, 3, SL_SEEN_TABLE, word(code + process->python.table));
	bpf_ringbuf_submit(death, BPF_RB_NO_WAKEUP);
}

/* PyCode_Type.tp_dealloc.  Hands a death over before counting it, so that a reader of the count finds the deaths. */
SEC("uprobe")
int code_dies(struct registers *at)
{
	__u32 pid = SL_SEEN_COOKIE_PID(bpf_get_attach_cookie(at)), slot = SL_SEEN_SLOT(at->di, pid);
	struct sl_seen_deaths *dead = bpf_map_lookup_elem(&deaths, &slot);

	if (!dead)
		return 0;
	if (dead->seen)
		say_death(pid, at->di, dead->count);
	__sync_fetch_and_add(&dead->count, 1);
	return 0;
}

/* The kernel checks the body of a loop once for each turn, but a function that is not static once: that saves it 60 ms. */
#define CHECKED_ONCE __attribute__((noinline))

/* In every version a thread state begins with the one before it in the list and the next. */
#define BEFORE(state) word(state)
#define NEXT(state)   word((state) + 8)

static __always_inline int is_listed(__u64 state, const struct sl_seen_python *python)
{
	__u64 before = BEFORE(state);

	return state == (before ? NEXT(before) : word(python->threads));
}

/* The innermost frame of a thread state; 0: it runs nothing. */
static __always_inline __u64 innermost(__u64 state, const struct sl_seen_python *python)
{
	__u64 frame = word(state + python->tstate);

	return python->through_cframe ? word(frame + python->current) : frame;
}

/*
 * The innermost frame of this state, if the thread of this number runs Python in it.  Until 3.11 a state that is made for a thread
 * that begins has the number of the thread that makes it, and no frame.
 */
CHECKED_ONCE __u64 frame_of(__u64 state, __u64 id, const struct sl_seen_python *python)
{
	return python && word(state + python->thread_id) == id ? innermost(state, python) : 0;
}

/* The innermost frame of the calling thread, and its state; 0: it runs no Python. */
static __always_inline __u64 first_frame(struct thread *thread, const struct sl_seen_python *python)
{
	__u64 id = 0, state = thread->python, frame;

	if (bpf_probe_read_kernel(&id, sizeof(id), (void *)(bpf_get_current_task() + python->thread_pointer)) || !id)
		return 0;
	if (state && is_listed(state, python) && (frame = frame_of(state, id, python)))
		return frame;
	state = word(python->threads);
#pragma clang loop unroll(disable)
	for (int i = 0; i < SL_SEEN_STATES && state; i++) {
		if ((frame = frame_of(state, id, python))) {
			thread->python = state;
			return frame;
		}
		state = NEXT(state);
	}
	return 0;
}

/* Offsets in a frame are below its size, which the verifier does not know. */
#define FIELD(type, frame, offset) (*(type *)&(frame)[(offset) & (SL_SEEN_FRAME_BYTES - sizeof(type))])

/* Adds the frame that is there.  Returns where the one outside it lies; 0: there is none; itself: it cannot be read. */
CHECKED_ONCE __u64 walk_one(struct sl_seen_lines *lines, struct thread *thread, __u64 at, const struct sl_seen_python *python)
{
	__u32 n, owner, slot;
	struct sl_seen_line *line;
	struct sl_seen_deaths *dead;
	__u64 code, outer;
	__u8 *frame;

	if (!lines || !thread || !python)
		return at;
	n = lines->count;
	frame = thread->frame;
	if (n >= SL_SEEN_LINES || bpf_probe_read_user(frame, python->frame_bytes & (SL_SEEN_FRAME_BYTES - 1), (void *)at))
		return at;
	outer = FIELD(__u64, frame, python->previous);
	owner = FIELD(__u8, frame, python->entry);
	if (python->style == SHIM_FRAMES && owner >= SHIM) {
		if (n)
			lines->line[n - 1].code |= SL_SEEN_LINE_ENTERED;
		if (thread->anchors < SL_SEEN_ANCHORS)
			thread->anchor[thread->anchors++ & (SL_SEEN_ANCHORS - 1)] = at;
		return outer;
	}
	code = FIELD(__u64, frame, python->code) & ~7ull;
	slot = SL_SEEN_SLOT(code, lines->pid);
	dead = bpf_map_lookup_elem(&deaths, &slot);
	line = &lines->line[n];
	line->code = SL_SEEN_LINE(code, dead ? dead->count : 0);
	if (dead)
		dead->seen = 1;
	line->instr = python->style == FRAME_OBJECTS ? (__u64)(__s64)FIELD(__s32, frame, python->instr)
						     : FIELD(__u64, frame, python->instr);
	if (python->style == FRAME_OBJECTS || (python->style == ENTRY_FLAGS && owner))
		line->code |= SL_SEEN_LINE_ENTERED;
	lines->count = n + 1;
	return outer;
}

static __always_inline void walk(struct sl_seen_lines *lines, struct thread *thread, __u64 at, const struct sl_seen_python *python)
{
	__u64 before = 0;

	lines->count = 0;
#pragma clang loop unroll(disable)
	for (int i = 0; i < SL_SEEN_LINES + SL_SEEN_LINES / 4 && at && at != before; i++) {
		before = at;
		at = walk_one(lines, thread, at, python);
	}
	lines->truncated = at != 0;
}

/* Until 3.11 the evaluation loop keeps a record on the C stack; in later versions `walk` finds the anchors. */
static __always_inline void find_anchors(struct thread *thread, const struct sl_seen_python *python)
{
	__u64 at = thread->python + python->cframe;

	for (int i = 0; i < SL_SEEN_ANCHORS && python->cframe; i++) {
		at = word(i ? at + python->cframe_previous : at);
		thread->anchor[i] = at;
	}
}

static __always_inline void say_python(struct thread *thread, __u32 pid, __u32 tid, __u64 number)
{
	struct sl_seen_process *process = bpf_map_lookup_elem(&processes, &pid);
	const struct sl_seen_python *python = &process->python;
	struct sl_seen_lines *lines;
	__u64 finalizing, first;

	if (!process || !python->is_known || !(first = first_frame(thread, python)))
		return;
	finalizing = word(python->finalizing);
	if (finalizing && finalizing != thread->python) /* its frames may be freed under it */
		return;
	lines = bpf_ringbuf_reserve(&ring, sizeof(*lines), 0);
	if (!lines)
		return;
	lines->kind = SL_SEEN_PYTHON;
	lines->number = number;
	lines->pid = pid;
	lines->tid = tid;
	walk(lines, thread, first, python);
	find_anchors(thread, python);
	if (lines->count)
		bpf_ringbuf_submit(lines, BPF_RB_NO_WAKEUP);
	else
		bpf_ringbuf_discard(lines, BPF_RB_NO_WAKEUP);
}
