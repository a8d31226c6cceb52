/* SPDX-License-Identifier: MIT */
#include "agent/stacks/inner.h"
#include "agent/process/process.h"

#define TRAIL_CHECKS 320u /* words of the frames outside them; longer trails are not kept */
#define KEY_WORDS    (SL_TRAIL_FRAMES + 1)
#define HEAD_WORDS   2 /* spare words behind the key: whether bp matters, and bp; then the checks */
#define PATIENCE     8 /* how often another stack with the same start must come before it replaces the one that is kept */

/* In an entry `stamp` is the number of checks, and `sum` how often another stack with the same start has come since. */
static struct sl_cache_entry *find_trail(struct sl_cache *trails, const struct sl_trail_start *start)
{
	return sl_cache_find(trails, start->hash, start->pc, KEY_WORDS, 0);
}

struct trail_check {
	uint64_t address, value;
};

static struct trail_check *trails_checks(struct sl_cache *trails, const struct sl_cache_entry *entry)
{
	return (struct trail_check *)&trails->words[entry->at + KEY_WORDS + HEAD_WORDS];
}

/* Number of the stack that begins with this start and has not changed; 0: none is known. */
static uint32_t trails_find(struct sl_cache *trails, const struct sl_trail_start *start)
{
	const struct sl_cache_entry *entry = find_trail(trails, start);
	const struct trail_check *check;
	const uint64_t *head;

	if (!entry)
		return 0;
	head = &trails->words[entry->at + KEY_WORDS];
	if (head[0] && head[1] != start->bp)
		return 0;
	check = trails_checks(trails, entry);
	/* Compares one after the other: a word is there to be read only if all frames inside it are the same. */
	for (uint64_t i = 0; i < entry->stamp; i++)
		if (*(const volatile uintptr_t *)check[i].address != check[i].value)
			return 0;
	return entry->id;
}

/*
 * Makes an entry with room for `max_checks` checks, which the caller fills and then numbers (trails_close).  start->bp must be
 * the same only if bp_matters.  NULL: another stack with this start is kept.
 */
static struct sl_cache_entry *trails_open(struct sl_cache *trails, const struct sl_trail_start *start, bool bp_matters,
					  uint32_t max_checks)
{
	struct sl_cache_entry *entry = find_trail(trails, start);
	uint64_t *head;

	if (entry && ++entry->sum < PATIENCE)
		return NULL;
	if (entry)
		entry->count = 0;
	entry = sl_cache_add(trails, start->hash, start->pc, KEY_WORDS, 0, HEAD_WORDS + 2 * max_checks);
	head = &trails->words[entry->at + KEY_WORDS];
	head[0] = bp_matters;
	head[1] = start->bp;
	return entry;
}

static void trails_close(struct sl_cache_entry *entry, uint32_t count, uint32_t id)
{
	entry->stamp = count;
	atomic_signal_fence(memory_order_seq_cst);
	entry->id = id;
}

#define FRAME_MAX 65536 /* a larger frame is seldom real: libunwind looks closer */

#ifdef __x86_64__

#define RULE_ROOM 4096 /* what reading a rule takes of the stack, at most */

/* Position of a walk. */
struct at {
	uintptr_t pc, sp, bp;
	const volatile uintptr_t *bp_slot;
};

/* Memory that this walk may read. */
struct pages {
	uintptr_t begin, bytes;
	bool gone; /* the stack leads to another, which cannot be read */
};

/* Blocks signals: no handler may come, or leave by longjmp, while an address is beside another's rule. */
static SL_NOINLINE struct sl_cfi_rule learn_rule(struct sl_walk_rule *entry, uintptr_t pc)
{
	struct sl_cfi_rule rule = {0};
	struct sl_mute mute;

	if (!sl_own_has_room(RULE_ROOM))
		return rule;
	mute = sl_mute_begin();
	rule = sl_cfi_find(pc);
	entry[1] = entry[0];
	entry[0] = (struct sl_walk_rule){pc, rule};
	sl_mute_end(&mute);
	return rule;
}

/* Looks for the rule in the two places of its address, the newer first. */
static inline __attribute__((always_inline)) struct sl_cfi_rule rule_at(struct sl_walk *walk, uintptr_t pc)
{
	struct sl_walk_rule *entry = &walk->rule[pc * 0x9e3779b97f4a7c15u >> 51 & (SL_WALK_RULES - 2)];

	if (SL_LIKELY(entry[0].pc == pc))
		return entry[0].rule;
	if (SL_LIKELY(entry[1].pc == pc))
		return entry[1].rule;
	return learn_rule(entry, pc);
}

static SL_NOINLINE bool tables_lie(void)
{
	atomic_store(&sl_cfi_lies, true);
	return false;
}

/*
 * True: everything from the stack pointer to the word below `cfa` can be read.  Where the thread's own stack leads to what cannot,
 * tables are noise; where another does, it may have led to a stack that is no more.
 */
static SL_NOINLINE bool can_reach(struct pages *pages, uintptr_t sp, uintptr_t cfa)
{
	uintptr_t page = sp & ~(uintptr_t)(SL_PAGE - 1), low = page;

	if (page - pages->begin < pages->bytes) {
		low = pages->begin;
		page = low + pages->bytes;
	}
	for (; page < cfa; page += SL_PAGE)
		if (!sl_pages_readable(page)) {
			pages->gone = !sl_own_is_known(sp);
			return sl_own_is_known(sp) && tables_lie();
		}
	*pages = (struct pages){.begin = low, .bytes = page - low};
	return true;
}

static inline __attribute__((always_inline)) struct pages own_pages(void)
{
	return (struct pages){.begin = sl_own.begin, .bytes = sl_own.end - sl_own.begin};
}

/* True: the rule leads to a frame outside. */
static inline bool cfi_leads_on(struct sl_cfi_rule rule)
{
	return rule.kind == SL_CFI_BY_SP || rule.kind == SL_CFI_BY_BP;
}

/* The rule is not simple: always false.  Notes that tables are noise where the rule leads to memory that cannot be read. */
static SL_NOINLINE bool is_not_simple(struct sl_cfi_rule rule, uintptr_t cfa)
{
	return cfi_leads_on(rule) && !sl_pages_readable(cfa - 8) && tables_lie();
}

static inline __attribute__((always_inline)) bool step(struct pages *pages, struct at *at, struct sl_cfi_rule rule)
{
	uintptr_t cfa = (rule.kind == SL_CFI_BY_SP ? at->sp : at->bp) + (uintptr_t)rule.cfa;

	if (SL_UNLIKELY(!cfi_leads_on(rule) || cfa - at->sp - 8 > FRAME_MAX || cfa & 7))
		return is_not_simple(rule, cfa);
	if (SL_UNLIKELY(cfa - 8 - pages->begin >= pages->bytes) && !can_reach(pages, at->sp, cfa))
		return false;
	if (SL_UNLIKELY(rule.bp != SL_CFI_BP_KEPT && cfa + (uintptr_t)rule.bp < at->sp))
		return tables_lie(); /* the word is below the frame */
	at->pc = ((const volatile uintptr_t *)cfa)[-1];
	at->sp = cfa;
	at->bp_slot = NULL;
	if (rule.bp != SL_CFI_BP_KEPT) {
		at->bp_slot = (const volatile uintptr_t *)(cfa + (uintptr_t)rule.bp);
		at->bp = *at->bp_slot;
	}
	return true;
}

/* The outermost frame, from `from` on, that is unchanged if `from` is. */
static uint32_t still_there(const struct sl_walk *walk, uint32_t from)
{
	uint32_t next = from + 1;

	/* Compares one after the other: where a frame ends is known only if all inside it are the same. */
	while (next < SL_WALK_FRAMES && ((const volatile uintptr_t *)walk->frame[next].sp)[-1] == walk->pc[next] &&
	       *walk->frame[next].check == walk->frame[next].bp)
		next++;
	return next - 1;
}

static void keep(struct sl_walk *walk, uint32_t n, const struct at *at, struct sl_cfi_rule rule)
{
	walk->fresh.pc[n] = at->pc;
	walk->fresh.frame[n] = (struct sl_walk_frame){.sp = at->sp, .bp = at->bp, .bp_slot = at->bp_slot, .rule = rule};
}

/*
 * Copies frames of the last walk into this one: from `from`, which both have, up to `to`.  No word that they depend on has
 * changed in between.
 */
static void keep_old(struct sl_walk *walk, uint32_t *n, uint32_t from, uint32_t to, struct at *at)
{
	for (uint32_t old = from; old < to; old++) {
		keep(walk, (*n)++, at, walk->frame[old].rule);
		at->pc = walk->pc[old + 1];
		at->sp = walk->frame[old + 1].sp;
		at->bp_slot = walk->frame[old + 1].bp_slot;
		if (at->bp_slot)
			at->bp = *at->bp_slot;
	}
}

static void set_check(struct sl_walk_frame *frame)
{
	frame->check = frame->bp_slot && frame->bp_matters ? frame->bp_slot : &frame->bp;
}

/* Joins n fresh frames with those of the last walk outside of them, from `common` on. */
static void join(struct sl_walk *walk, uint32_t n, uint32_t common, const struct at *at)
{
	bool matters = false;

	if (common < SL_WALK_FRAMES) {
		walk->frame[common].bp = at->bp;
		walk->frame[common].bp_slot = at->bp_slot;
		set_check(&walk->frame[common]);
		matters = walk->frame[common].bp_matters;
	}
	memcpy(&walk->pc[common - n], walk->fresh.pc, n * sizeof(walk->pc[0]));
	memcpy(&walk->frame[common - n], walk->fresh.frame, n * sizeof(walk->frame[0]));
	for (uint32_t i = common; i-- > common - n;) {
		struct sl_walk_frame *frame = &walk->frame[i];

		matters = frame->rule.kind == SL_CFI_BY_BP || (frame->rule.bp == SL_CFI_BP_KEPT && matters);
		frame->bp_matters = matters;
		set_check(frame);
	}
}

/* A signal handler has walked since: fresh or half joined frames are no stack. */
static bool was_entered(const struct sl_walk *walk, uint32_t turn)
{
	atomic_signal_fence(memory_order_seq_cst);
	return *(const volatile uint32_t *)&walk->turn != turn;
}

static SL_NOINLINE enum sl_walk_end walk_from(struct sl_walk *walk, struct pages *pages, uint32_t max, struct at at)
{
	uint32_t first = walk->first ? walk->first : SL_WALK_FRAMES, old = first, n = 0, common = SL_WALK_FRAMES;
	uint32_t turn = ++walk->turn;
	bool cut = true;

	while (n < max) {
		struct sl_cfi_rule rule;

		while (old < SL_WALK_FRAMES && walk->frame[old].sp < at.sp)
			old++;
		if (old < SL_WALK_FRAMES && walk->frame[old].sp == at.sp && walk->pc[old] == at.pc &&
		    (walk->frame[old].bp == at.bp || !walk->frame[old].bp_matters)) {
			uint32_t last = still_there(walk, old);

			if (last == SL_WALK_FRAMES - 1 && (!walk->cut || (!n && old == first))) {
				common = old;
				cut = walk->cut;
				break;
			}
			if (last - old > max - n)
				last = old + (max - n);
			keep_old(walk, &n, old, last, &at);
			old = last + 1;
			if (n == max)
				break;
		}
		rule = rule_at(walk, at.pc);
		keep(walk, n++, &at, rule);
		if (rule.kind == SL_CFI_END) {
			cut = false;
			break;
		}
		if (!step(pages, &at, rule)) {
			if (!pages->gone && !walk->alone && !atomic_load_explicit(&sl_cfi_lies, memory_order_relaxed)) {
				walk->guess = rule.kind == SL_CFI_NONE ? at.bp : 0;
				walk->signal = rule.kind == SL_CFI_SIGNAL ? at.pc : 0;
				return SL_WALK_UNKNOWN;
			}
			cut = false; /* no table is left to ask: the stack ends here */
			break;
		}
	}
	walk->foreign |= !sl_own_is_known(at.sp);
	if (!n)
		return was_entered(walk, turn) ? SL_WALK_UNKNOWN : SL_WALK_SAME;
	if (n > common || was_entered(walk, turn))
		return SL_WALK_UNKNOWN; /* or the stack is deeper than there is room */
	walk->first = 0;
	atomic_signal_fence(memory_order_seq_cst);
	join(walk, n, common, &at);
	walk->cut = cut;
	if (was_entered(walk, turn)) {
		walk->first = 0;
		return SL_WALK_UNKNOWN;
	}
	walk->built = turn;
	walk->first = common - n;
	return SL_WALK_DONE;
}

static bool is_same(struct sl_walk *walk, const struct at *at)
{
	uint32_t first = walk->first, turn = ++walk->turn;

	return first && !was_entered(walk, turn) && walk->frame[first].sp == at->sp && walk->pc[first] == at->pc &&
	       (walk->frame[first].bp == at->bp || !walk->frame[first].bp_matters) &&
	       still_there(walk, first) == SL_WALK_FRAMES - 1 && !was_entered(walk, turn);
}

/* Gives the innermost frames of the stack, and its number if it has one. */
static uint32_t follow_trail(struct sl_walk *walk, struct pages *pages, struct at at)
{
	struct sl_trail_start *start = &walk->start;
	uint32_t turn = ++walk->turn, name;
	uint64_t hash = 0;

	for (unsigned n = 0; n < SL_TRAIL_FRAMES; n++) {
		start->pc[n] = at.pc;
		hash = sl_cache_hash(hash, at.pc);
		if (!step(pages, &at, rule_at(walk, at.pc)))
			return 0;
	}
	start->sp = at.sp;
	start->bp = at.bp;
	start->hash = sl_cache_hash(hash, at.sp);
	walk->started = turn + 1; /* the next walk has another turn */
	name = trails_find(&walk->trails, start);
	return was_entered(walk, turn) ? 0 : name;
}

/* The word that the frame's rbp is compared with is one of the stack. */
static bool has_check(const struct sl_walk_frame *frame)
{
	return frame->check != &frame->bp;
}

/* From now on the stack that was walked last is known by this name. */
static void keep_trail(struct sl_walk *walk, uint32_t name)
{
	uint32_t from = walk->first + SL_TRAIL_FRAMES, max_checks = SL_WALK_FRAMES - from, count = 0, turn = walk->turn;
	struct sl_cache_entry *entry;
	struct trail_check *check;

	if (walk->foreign || walk->started != walk->built || from >= SL_WALK_FRAMES || walk->frame[from].sp != walk->start.sp)
		return;
	for (uint32_t i = from + 1; i < SL_WALK_FRAMES; i++)
		max_checks += has_check(&walk->frame[i]);
	if (max_checks > TRAIL_CHECKS)
		return;
	entry = trails_open(&walk->trails, &walk->start, walk->frame[from].bp_matters, max_checks);
	if (!entry)
		return;
	check = trails_checks(&walk->trails, entry);
	for (uint32_t i = from; i < SL_WALK_FRAMES; i++) {
		const struct sl_walk_frame *frame = &walk->frame[i];

		check[count++] = (struct trail_check){frame->sp - 8, walk->pc[i]};
		if (i > from && has_check(frame))
			check[count++] = (struct trail_check){(uintptr_t)frame->check, frame->bp};
	}
	if (was_entered(walk, turn)) /* a signal handler's walk came in between and may have kept a trail itself */
		sl_walk_forget(walk);
	else
		trails_close(entry, count, name);
}

#define HERE(at)                                                                                                                   \
	__asm__ volatile("lea 1f(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2\n1:" : "=&r"((at).pc), "=&r"((at).sp), "=&r"((at).bp))

enum sl_walk_end sl_walk(struct sl_walk *walk, unsigned max, struct sl_walked *walked)
{
	struct pages pages = {0};
	enum sl_walk_end end;
	struct at at = {0};
	bool is_foreign;

	HERE(at);
	is_foreign = !sl_own_has(at.sp);
	if (SL_UNLIKELY(walk->max != max)) {
		walk->first = 0;
		walk->max = max;
		sl_walk_forget(walk);
	}
	if (SL_UNLIKELY(is_foreign || walk->foreign))
		walk->first = 0;
	walk->foreign = is_foreign;
	walk->guess = walk->signal = 0;
	if (is_foreign && sl_open_proc_sandboxed()) /* a filter might forbid the questions */
		return SL_WALK_UNKNOWN;
	if (!is_foreign)
		pages = own_pages();
	if (is_same(walk, &at))
		end = SL_WALK_SAME;
	else if (!is_foreign && (walked->name = follow_trail(walk, &pages, at)))
		return SL_WALK_KNOWN;
	else
		end = walk_from(walk, &pages, max < SL_WALK_FRAMES - 1 ? max : SL_WALK_FRAMES - 1, at);
	walked->gone = pages.gone;
	if (end != SL_WALK_UNKNOWN) {
		walked->pcs = &walk->pc[walk->first];
		walked->count = SL_WALK_FRAMES - walk->first < max ? SL_WALK_FRAMES - walk->first : max;
		walked->built = walk->built;
	}
	return end;
}

/*
 * True: no form of a call (e8; ff /2 with its operand) ends at `pc`, so nothing returns there.  It is no return address, or
 * one that was written for the outermost function of a fiber (makecontext's has no unwind rule at such an address).
 */
static bool is_planted(uintptr_t pc)
{
	const uint8_t *code = (const uint8_t *)pc;

	if (!sl_pages_readable(pc - 7) || !sl_pages_readable(pc - 1))
		return false;
	for (int n = 2; n <= 7; n++)
		if (code[-n] == 0xff && (code[1 - n] & 0x38) == 0x10)
			return false;
	return code[-5] != 0xe8;
}

extern const ElfW(Ehdr) own_object __asm__("__ehdr_start") SL_HIDDEN; /* the linker's; our addresses begin there */

static bool is_own(uintptr_t pc)
{
	const ElfW(Phdr) *segments = (const void *)((uintptr_t)&own_object + own_object.e_phoff);

	for (unsigned i = 0; i < own_object.e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X &&
		    pc - (uintptr_t)&own_object - segments[i].p_vaddr < segments[i].p_memsz)
			return true;
	return false;
}

enum sl_walk_way sl_walk_way_to(const void *address, uintptr_t *last)
{
	uintptr_t to = (uintptr_t)address;
	struct pages pages = {0};
	struct at at = {0};

	HERE(at);
	if (sl_own_has(at.sp)) /* pages in it may wait for the program to serve them */
		pages = own_pages();
	for (unsigned n = 0; n < SL_WALK_FRAMES; n++) {
		struct sl_cfi_rule rule = sl_cfi_find(at.pc);
		uintptr_t sp = *last = at.sp, pc = at.pc;

		if (rule.kind == SL_CFI_SIGNAL)
			return SL_WALK_ENTERED;
		if (rule.kind == SL_CFI_END)
			return SL_WALK_ELSEWHERE;
		if (!step(&pages, &at, rule)) /* outer frames are above */
			return to < sp || is_planted(at.pc) ? SL_WALK_ELSEWHERE : SL_WALK_UNCLEAR;
		if (to - sp < at.sp - sp) {
			*last = at.sp;
			return is_own(pc) ? SL_WALK_INSIDE : SL_WALK_OTHER;
		}
	}
	return SL_WALK_UNCLEAR;
}

void sl_walk_name(struct sl_walk *walk, const struct sl_walked *walked, uint32_t name)
{
	*(volatile uint64_t *)&walk->named = (uint64_t)walked->built << 32 | name;
	keep_trail(walk, name);
}

#else

enum sl_walk_way sl_walk_way_to(const void *address, uintptr_t *last)
{
	return SL_WALK_UNCLEAR;
}

void sl_walk_name(struct sl_walk *walk, const struct sl_walked *walked, uint32_t name)
{
}

enum sl_walk_end sl_walk(struct sl_walk *walk, unsigned max, struct sl_walked *walked)
{
	return SL_WALK_UNKNOWN;
}

#endif

void sl_walk_forget(struct sl_walk *walk)
{
	walk->named = 0;
	sl_cache_forget(&walk->trails);
}

void sl_walk_renew(struct sl_walk *walk, uint64_t unloads)
{
	if (walk->unloads) /* otherwise its pages are fresh */
		memset(walk->rule, 0, sizeof(walk->rule));
	walk->unloads = unloads;
	walk->max = 0;
}
