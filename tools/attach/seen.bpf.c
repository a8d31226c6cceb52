// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One pair of programs serves every call; the probe's cookie says which call it is.  The entry keeps the arguments.  The return
 * copies what they point to and hands everything over.  The collector (rows.c) evaluates the rows, not this program.
 */
#include "tools/attach/seen.h"

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* The kernel's pt_regs of x86-64. */
struct registers {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

struct open_call {
	__u64 begin_ns, sp, number;
	__u64 words[SL_SEEN_WORDS];
	__u32 api;
};

struct thread {
	__u64 calls;
	__u64 python;			 /* its thread state when it was last looked for */
	__u8 frame[SL_SEEN_FRAME_BYTES]; /* of Python, while it is looked at */
	__u64 anchor[SL_SEEN_ANCHORS];	 /* of the stack that is looked at */
	__u32 anchors;
	__u32 depth;
	struct open_call open[SL_SEEN_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct sl_seen_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SL_SEEN_APIS);
	__type(key, __u32);
	__type(value, struct sl_seen_row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* the state of a new thread: too large for the program's stack */
	__type(key, __u32);
	__type(value, struct thread);
} blank SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SL_SEEN_LOST_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, SL_SEEN_RING);
} ring SEC(".maps");

static __always_inline void lose(__u32 why)
{
	__u64 *count = bpf_map_lookup_elem(&lost, &why);

	if (count)
		__sync_fetch_and_add(count, 1);
}

static __always_inline struct thread *thread_of(__u32 tid, int make)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid), *fresh;
	__u32 zero = 0;

	if (thread || !make)
		return thread;
	fresh = bpf_map_lookup_elem(&blank, &zero);
	if (!fresh || bpf_map_update_elem(&threads, &tid, fresh, BPF_ANY))
		return 0;
	return bpf_map_lookup_elem(&threads, &tid);
}

#include "tools/attach/python.bpf.c"
#include "tools/attach/native.bpf.c"

/* The compiler knows that the index is in range and drops the check, but the verifier does not know. */
static __always_inline struct open_call *open_at(struct thread *thread, __u32 index)
{
	asm volatile("" : "+r"(index));
	index &= SL_SEEN_DEPTH - 1;
	return &thread->open[index];
}

SEC("uprobe")
int call_begins(struct registers *at)
{
	struct thread *thread = thread_of((__u32)bpf_get_current_pid_tgid(), 1);
	__u32 pid = SL_SEEN_COOKIE_PID(bpf_get_attach_cookie(at)), depth;
	struct sl_seen_process *process = bpf_map_lookup_elem(&processes, &pid);
	struct open_call *call;

	if (!thread || !process)
		return 0;
	/* Drops calls that were left by longjmp: those whose stack pointer is below this one. */
	for (int i = 0; i < SL_SEEN_DEPTH; i++) {
		depth = thread->depth;
		if (!depth || depth > SL_SEEN_DEPTH || open_at(thread, depth - 1)->sp > at->sp)
			break;
		thread->depth = depth - 1;
	}
	depth = thread->depth;
	if (!depth && !process->watched)
		return 0;
	if (depth >= SL_SEEN_DEPTH) {
		lose(SL_SEEN_LOST_DEPTH);
		return 0;
	}
	call = open_at(thread, depth);
	call->api = (__u32)bpf_get_attach_cookie(at);
	call->sp = at->sp;
	call->number = ++thread->calls;
	call->words[0] = at->di;
	call->words[1] = at->si;
	call->words[2] = at->dx;
	call->words[3] = at->cx;
	call->words[4] = at->r8;
	call->words[5] = at->r9;
	bpf_probe_read_user(&call->words[SL_SEEN_REGISTERS], 8 * SL_SEEN_STACK, (void *)(at->sp + 8));
	thread->depth = depth + 1;
	call->begin_ns = bpf_ktime_get_ns();
	return 0;
}

/* Finds the call that returns; calls above it were left by longjmp. */
static __always_inline struct open_call *closed(struct thread *thread, __u32 api, __u64 sp)
{
	for (int i = 0; i < SL_SEEN_DEPTH; i++) {
		__u32 depth = thread->depth;
		struct open_call *call;

		if (!depth || depth > SL_SEEN_DEPTH)
			return 0;
		call = open_at(thread, depth - 1);
		if (call->sp >= sp) /* opened by a surrounding call whose own entry was not seen */
			return 0;
		thread->depth = depth - 1;
		if (call->api == api && call->sp + 8 == sp)
			return call;
	}
	return 0;
}

/* Hands a call over, with room for `max_copies`.  The caller's frames are whole and its registers restored: stacks begin there. */
static __always_inline void say_call(struct registers *at, struct thread *thread, const struct open_call *call,
				     const struct sl_seen_row *row, __u32 copies, const int max_copies, __u64 now_ns)
{
	struct sl_seen *seen = bpf_ringbuf_reserve(&ring, SL_SEEN_BYTES(max_copies), 0);
	__u32 depth = thread->depth;

	if (!seen) {
		lose(SL_SEEN_LOST_FULL);
		return;
	}
	seen->kind = SL_SEEN_CALL;
	seen->api = call->api;
	seen->begin_ns = call->begin_ns;
	seen->end_ns = now_ns;
	__builtin_memcpy(seen->words, call->words, sizeof(seen->words));
	seen->number = call->number;
	seen->outer = depth ? open_at(thread, depth - 1)->number : 0;
	seen->caller = at->ip;
	seen->result = (__s64)at->ax;
	seen->pid = SL_SEEN_COOKIE_PID(bpf_get_attach_cookie(at));
	seen->tid = (__u32)bpf_get_current_pid_tgid();
	seen->cgroup = bpf_get_current_cgroup_id();
	seen->copies = copies;
	for (int i = 0; i < max_copies; i++) {
		__u32 word = row->copy[i].word, size = row->copy[i].bytes;
		__u64 from = word < SL_SEEN_WORDS ? call->words[word] : 0;

		if (i >= copies)
			break;
		if (size > SL_SEEN_COPY)
			size = SL_SEEN_COPY;
		if (from) /* data that cannot be read is handed over as zeros */
			bpf_probe_read_user(seen->data[i], size, (void *)from);
	}
	bpf_ringbuf_submit(seen, BPF_RB_NO_WAKEUP);
}

SEC("uretprobe")
int call_returns(struct registers *at)
{
	__u64 now_ns = bpf_ktime_get_ns(), id = bpf_get_current_pid_tgid(), cookie = bpf_get_attach_cookie(at);
	struct thread *thread = thread_of((__u32)id, 0);
	__u32 api = (__u32)cookie;
	struct open_call *call = thread ? closed(thread, api, at->sp) : 0;
	struct sl_seen_row *row = bpf_map_lookup_elem(&rows, &api);
	int stack;

	if (!call || !row)
		return 0;
	/* As the agent: of events that last, and of failures.  Inner calls become part of the outermost. */
	stack = !thread->depth && (row->stack || (__s32)at->ax);
	if (stack) {
		__builtin_memset(thread->anchor, 0, sizeof(thread->anchor));
		thread->anchors = 0;
		say_python(thread, SL_SEEN_COOKIE_PID(cookie), (__u32)id, call->number);
		say_native(at, thread, SL_SEEN_COOKIE_PID(cookie), (__u32)id, call->number);
	}
	if (row->copies <= SL_SEEN_FEW)
		say_call(at, thread, call, row, row->copies, SL_SEEN_FEW, now_ns);
	else
		say_call(at, thread, call, row, row->copies < SL_SEEN_COPIES ? row->copies : SL_SEEN_COPIES, SL_SEEN_COPIES,
			 now_ns);
	return 0;
}

char sl_license[] SEC("license") = "Dual MIT/GPL";
