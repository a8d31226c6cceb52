// SPDX-License-Identifier: MIT
// Runs PyTorch's real allocator, from the wheel's libc10_cuda.so, without the rest of PyTorch and without a device.
//
//   oracle FOLDER RELEASE <LINES     each "SEED CAPACITY_MIB FRACTION SETTINGS", answered by a line (ops.h)
//
// No header of PyTorch is used: methods are called by their slots in the class's virtual table, which differ between
// releases.  Every line runs in a process of its own, since settings are read once.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern "C" {
#include "fake.h"
}
#include "ops.h"

// Slots of virtual functions: c10::Allocator's come first, then c10::DeviceAllocator's (since 2.9), then CUDAAllocator's.
struct slots {
	const char *release;
	unsigned raw_deleter, alloc_on_stream, raw_delete, init, set_fraction, empty_cache, record_stream, stats;
	unsigned inactive_at, retries_at;	 // in DeviceStats, bytes
	unsigned begin, end, release_pool, mark; // of private pools; 0: there is none
};
static const slots releases[] = {
	{"2.2", 3, 5, 6, 7, 9, 10, 13, 14, 672, 864, 0, 0, 0, 0},
	{"2.3", 4, 7, 8, 9, 11, 12, 15, 16, 672, 864, 20, 21, 22, 0},
	{"2.4", 4, 7, 8, 9, 11, 12, 15, 16, 672, 864, 20, 21, 22, 0},
	{"2.5", 4, 7, 8, 9, 11, 12, 15, 16, 672, 864, 20, 21, 22, 0},
	{"2.6", 4, 7, 8, 9, 12, 13, 18, 19, 672, 864, 23, 24, 25, 0},
	{"2.7", 4, 7, 8, 9, 12, 13, 18, 19, 672, 864, 23, 24, 25, 0},
	{"2.8", 4, 7, 8, 9, 12, 13, 18, 19, 672, 864, 23, 24, 25, 0},
	{"2.9", 4, 13, 14, 15, 17, 7, 8, 9, 672, 864, 24, 25, 26, 0},
	{"2.10", 4, 14, 15, 16, 18, 7, 8, 9, 672, 864, 26, 27, 28, 0},
	{"2.11", 4, 14, 15, 16, 18, 7, 8, 9, 672, 864, 26, 27, 28, 0},
	{"2.12", 4, 14, 15, 16, 18, 7, 8, 9, 672, 864, 26, 27, 28, 0},
	{"2.13", 4, 14, 15, 16, 18, 7, 8, 9, 704, 896, 26, 27, 30, 28},
	{"2.14", 4, 14, 15, 16, 18, 7, 8, 9, 704, 896, 26, 27, 30, 28},
	{"2.15", 4, 14, 15, 16, 18, 7, 8, 9, 704, 896, 26, 27, 30, 28},
};

// The layouts of c10::DataPtr, c10::Stream and c10::MempoolId_t.
struct data_ptr {
	void *data;
	std::unique_ptr<void, void (*)(void *)> context;
	int8_t type, index;
};
struct stream_value {
	int8_t type, index;
	int64_t id;
};
struct pool_id {
	uint64_t first, second;
};

static const slots *at;
static void *self;
static void *slot(unsigned index)
{
	return (*(void ***)self)[index];
}

static bool has_context(signed char)
{
	return true;
}

static void load(const std::string &folder)
{
	if (!dlopen((folder + "/libc10.so").c_str(), RTLD_NOW | RTLD_GLOBAL)) {
		fprintf(stderr, "%s\n", dlerror());
		_exit(2);
	}
	dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	void *library = dlopen((folder + "/libc10_cuda.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		_exit(2);
	}
	((void (*)(bool (*)(signed char)))dlsym(library, "_ZN3c104cuda9_internal20setHasPrimaryContextEPFbaE"))(has_context);
	if (void *cache = dlsym(library, "_ZN3c104cuda6detail21init_p2p_access_cacheEl"))
		((void (*)(int64_t))cache)(1);
	self = *(void **)dlsym(library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
	((void (*)(void *, int))slot(at->init))(self, 1);
}

static void *stream_of(unsigned index)
{
	return (void *)(uintptr_t)(index * 0x1000);
}

static void free_later(void *pointer, unsigned due)
{
	auto deleter = ((void (*(*)(void *))(void *))slot(at->raw_deleter))(self);
	data_ptr data{pointer, {pointer, deleter}, 1, 0};

	fake.due = due;
	((void (*)(void *, const data_ptr &, stream_value))slot(at->record_stream))(self, data, {1, 0, 0x100000});
	((void (*)(void *, void *))slot(at->raw_delete))(self, pointer);
	data.context.release();
}

// Passes a std::string of the old or the new ABI; the old one has its length before its text.
static void change(const char *text)
{
	static struct {
		size_t length, room;
		int64_t shared;
		char text[200];
	} old;
	struct {
		char *text;
		size_t length, room, unused;
	} string{old.text, strlen(text), sizeof(old.text), 0};

	old.length = strlen(text);
	old.room = sizeof(old.text);
	old.shared = -1; // not shared with another string
	strcpy(old.text, text);
	const char *const names[] = {
		"_ZN3c104cuda20CUDACachingAllocator20setAllocatorSettingsERKSs",
		"_ZN3c104cuda20CUDACachingAllocator20setAllocatorSettingsERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"};
	for (const char *name : names)
		if (void *set = dlsym(RTLD_DEFAULT, name))
			return ((void (*)(void *))set)(&string);
	void *(*instance)() = (void *(*)())dlsym(RTLD_DEFAULT, "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig8instanceEv");
	((void (*)(void *, void *))dlsym(RTLD_DEFAULT, "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig9parseArgsERKNSt7__"
						       "cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"))(instance(), &string);
}

static bool asserted;	// an assertion failed while memory was given back, so the figures mean nothing
static unsigned routed[2]; // the pools that the next request suits, 0 for none

// Does what MemPool's destructor does; up to 2.7 that empties the pool which the thread uses.
static void empty(pool_id id)
{
	struct {
		void *allocator;
		bool by_program;
		pool_id id;
		int8_t device;
	} pool{nullptr, true, id, 0};
	void *context[8];
	auto enter = (void (*)(void *, void *))dlsym(RTLD_DEFAULT, "_ZN3c104cuda14MemPoolContextC1EPNS0_7MemPoolE");
	auto leave = (void (*)(void *))dlsym(RTLD_DEFAULT, "_ZN3c104cuda14MemPoolContextD1Ev");

	if (enter)
		enter(context, &pool);
	((void (*)(void *, pool_id))slot(at->empty_cache))(self, id);
	if (leave)
		leave(context);
}

static void on_pool(const struct op &op)
{
	pool_id id{0, op.pool};
	unsigned pool = op.pool;

	if (op.kind == OP_BEGIN)
		((void (*)(void *, int8_t, pool_id, std::function<bool(void *)>))slot(at->begin))(
			self, 0, id, [pool](void *) { return routed[0] == pool || routed[1] == pool; });
	else if (op.kind == OP_END)
		((void (*)(void *, int8_t, pool_id))slot(at->end))(self, 0, id);
	else if (op.kind == OP_RELEASE || op.kind == OP_DROP)
		((void (*)(void *, int8_t, pool_id))slot(at->release_pool))(self, 0, id);
	else { // this adds a user of the pool, as a MemPool's constructor does
		((void (*)(void *, int8_t, pool_id, std::function<bool(void *)>))slot(at->begin))(self, 0, id, nullptr);
		((void (*)(void *, int8_t, pool_id))slot(at->end))(self, 0, id);
	}
	if (op.kind == OP_DROP)
		empty(id);
	if (op.captures && at->mark)
		((void (*)(void *, int8_t))slot(at->mark + (op.kind == OP_END)))(self, 0);
}

static long long run(const struct op *ops, unsigned count)
{
	std::vector<void *> live(count);

	for (unsigned i = 0; i < count; i++) {
		const struct op &op = ops[i];

		fake.now = i;
		routed[0] = op.kind == OP_ALLOC ? op.pool : 0;
		routed[1] = op.kind == OP_ALLOC ? op.newer : 0;
		fake.capturing = op.kind == OP_ALLOC && op.captures;
		try {
			if (op.kind == OP_SETTINGS)
				change(ops_settings[op.id]);
			else if (op.kind >= OP_HOLD)
				on_pool(op);
			else if (op.kind == OP_ALLOC)
				live[op.id] = ((void *(*)(void *, size_t, void *))slot(at->alloc_on_stream))(self, op.bytes,
													     stream_of(op.stream));
			else if (op.kind == OP_EMPTY)
				((void (*)(void *, pool_id))slot(at->empty_cache))(self, {0, 0});
			else if (op.kind == OP_FREE)
				((void (*)(void *, void *))slot(at->raw_delete))(self, live[op.id]);
			else
				free_later(live[op.id], op.due);
		} catch (const std::exception &error) {
			if (op.kind == OP_EMPTY && strstr(error.what(), "captures_underway"))
				continue; /* the setting is refused, as it would be for a program */
			/* an assertion of 2.2 to 2.4 fails for an expandable block under max_split_size_mb */
			if (!strstr(error.what(), "out of memory") && !strstr(error.what(), "INTERNAL ASSERT")) {
				fprintf(stderr, "%s\n", error.what());
				return -2;
			}
			asserted = strstr(error.what(), "cudaMalloc_count");
			return i;
		}
	}
	return -1;
}

static void one(const std::string &folder, unsigned long long seed, unsigned long long capacity, double fraction,
		const char *settings)
{
	alignas(16) static char stats[4096];
	struct answer answer = {};
	unsigned count;
	struct op *ops = ops_make(seed, &count);

	setenv("PYTORCH_CUDA_ALLOC_CONF", settings, 1);
	fake.capacity = fake.total = capacity << 20;
	fake.descending = getenv("DESCENDING") != nullptr;
	load(folder);
	if (fraction > 0)
		((void (*)(void *, double, int8_t))slot(at->set_fraction))(self, fraction, 0);
	answer.oom = run(ops, count);
	((void *(*)(void *, void *, int8_t))slot(at->stats))(stats, self, 0);
	auto word = [](unsigned offset) { return *(unsigned long long *)(stats + offset); };
	answer.peak_reserved = word(488);
	answer.reserved = word(480);
	if (asserted)
		answer.reserved = 0;
	answer.peak_allocated = word(392);
	answer.allocated = word(384);
	answer.peak_segments = word(104);
	answer.peak_inactive = word(at->inactive_at + 8);
	answer.retries = word(at->retries_at);
	answer.calls = fake.calls;
	printf(ANSWER_FORMAT, ANSWER_VALUES(answer));
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	unsigned long long seed, capacity;
	double fraction;
	char settings[512];

	for (const slots &s : releases)
		if (argc == 3 && !strcmp(s.release, argv[2]))
			at = &s;
	if (!at)
		return 2;
	while (scanf("%llu %llu %lf %511s", &seed, &capacity, &fraction, settings) == 4) {
		int status;
		pid_t child = fork();

		if (!child)
			one(argv[1], seed, capacity, fraction, strcmp(settings, "-") ? settings : "");
		waitpid(child, &status, 0);
		if (status) {
			printf("died %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status));
			fflush(stdout);
		}
	}
	return 0;
}
