/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The native stack of the thread that is in a call: its registers and the piece of its stack that is above them.  The caller's
 * frames are whole and its registers restored when a call returns.  The collector unwinds it (unwind.c).  Part of seen.bpf.c.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32); /* a process whose stacks are copied */
	__type(value, __u64);
} loads SEC(".maps");

/* The dynamic loader's function for debuggers, which it calls before and after it loads or unloads libraries. */
SEC("uprobe")
int libraries_change(struct registers *at)
{
	__u32 pid = SL_SEEN_COOKIE_PID(bpf_get_attach_cookie(at));
	__u64 *count = bpf_map_lookup_elem(&loads, &pid);

	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}

/* Copies registers and stack, up to what cannot be read: there the stack's memory ends. */
static __always_inline void say_native(struct registers *at, const struct thread *thread, __u32 pid, __u32 tid, __u64 number)
{
	__u64 *changes = bpf_map_lookup_elem(&loads, &pid), from = at->sp;
	struct sl_seen_native *seen;
	__u32 bytes = 0;

	if (!changes)
		return;
	/* the second half of the buffer is reserved for calls */
	seen = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < SL_SEEN_RING / 2 ? bpf_ringbuf_reserve(&ring, sizeof(*seen), 0) : 0;
	if (!seen) {
		lose(SL_SEEN_LOST_STACK);
		return;
	}
	seen->kind = SL_SEEN_NATIVE;
	seen->number = number;
	seen->pid = pid;
	seen->tid = tid;
	seen->loads = *changes;
	seen->bx = at->bx;
	seen->bp = at->bp;
	seen->r12 = at->r12;
	seen->r13 = at->r13;
	seen->r14 = at->r14;
	seen->r15 = at->r15;
	seen->sp = at->sp;
	seen->ip = at->ip;
	__builtin_memcpy(seen->anchor, thread->anchor, sizeof(seen->anchor));
	for (int i = 0; i < SL_SEEN_COPIED / SL_SEEN_PAGE; i++) {
		__u32 size = SL_SEEN_PAGE - (from & (SL_SEEN_PAGE - 1));

		if (bytes > SL_SEEN_COPIED - SL_SEEN_PAGE || bpf_probe_read_user(seen->stack + bytes, size, (void *)from))
			break;
		bytes += size;
		from += size;
	}
	seen->bytes = bytes;
	bpf_ringbuf_submit(seen, BPF_RB_NO_WAKEUP);
}
