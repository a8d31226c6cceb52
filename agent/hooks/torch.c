/* SPDX-License-Identifier: MIT */
/*
 * PyTorch's own blocks, as its allocators report them to its profiler, and the backward pass.
 *
 * The reports come while the allocator's mutex is held: nothing here calls torch or CUDA, takes the GIL or calls malloc.  Names
 * and arguments changed over the versions; each name forwards to its own real function.  A C++ struct Device {int8_t type,
 * index} is passed in one register, as an integer is.
 *
 * Longer than other files: so that every mangled name of PyTorch's is in one place.
 */
#include <stdlib.h>

#include "agent/file/file.h"
#include "agent/hooks/parts.h"
#include "agent/symbols/symbols.h"
#include "agent/stacks/stacks.h"
#include "common/text.h"

#define EXPORTED_AS(symbol) __asm__(symbol) __attribute__((visibility("default")))

/* c10::DeviceType */
enum { DEVICE_CPU = 0, DEVICE_CUDA = 1, DEVICE_HIP = 6 };

/* The real function of a mangled name. */
struct real {
	const char *symbol;
	_Atomic uint64_t cached;
};

static SL_NOINLINE void *find_real(struct real *real, const void *caller, uint64_t unloads)
{
	void *function = sl_resolve_for(real->symbol, caller);

	sl_objects_keep(&real->cached, function, unloads);
	return function;
}

static inline void *real_of(struct real *real, const void *caller)
{
	uint64_t unloads = atomic_load_explicit(&sl_objects_unloads, memory_order_acquire);
	void *function = sl_objects_kept(&real->cached, unloads);

	return SL_LIKELY(function) ? function : find_real(real, caller, unloads);
}

/* --- which PyTorch -----------------------------------------------------------------------------------------
 */

struct place {
	uintptr_t address;
	const char *path;
	uintptr_t begin, bytes; /* of the segment that the function is in */
};

static int find_path(struct dl_phdr_info *info, size_t size, void *data)
{
	struct place *place = data;
	uintptr_t offset = place->address - info->dlpi_addr;

	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && offset - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz) {
			place->path = info->dlpi_name;
			place->begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			place->bytes = info->dlpi_phdr[i].p_memsz;
		}
	return place->path != NULL;
}

/* "2.13" of "2.13.0+cpu". */
static bool add_version(struct sl_text *to, const char *version)
{
	size_t major = strspn(version, "0123456789"), minor;

	if (!major || version[major] != '.')
		return false;
	minor = strspn(version + major + 1, "0123456789");
	sl_text_add_bytes(to, version, major + 1 + minor);
	return minor != 0;
}

/* A wheel has torch/lib/libc10.so and torch/version.py; distributions put the version into the library's name. */
static bool add_version_of(struct sl_text *to, const char *path)
{
	const char *library = path ? strstr(path, "/lib/libc10.so") : NULL, *found;
	static char file[4096], text[1024]; /* used by one thread, once */
	struct sl_text name = sl_text_begin(file, sizeof(file));

	if (!library)
		return (found = path ? strstr(path, "libc10.so.") : NULL) && add_version(to, found + strlen("libc10.so."));
	sl_text_add_bytes(&name, path, (size_t)(library - path));
	sl_text_add(&name, "/version.py");
	if (sl_file_read(file, text, sizeof(text)) <= 0 || !(found = strstr(text, "__version__ = '")))
		return false;
	return add_version(to, found + strlen("__version__ = '"));
}

/* torch._C._cuda_setMemoryFraction, where it is exported; see set_fraction. */
#define SET_FRACTION "_Z28THCPModule_setMemoryFractionP7_objectS0_"

static _Atomic uint64_t told_for; /* the recording that knows the version */

/* Once per recording, at its first block. */
static SL_NOINLINE void tell_version(const void *function, const char *versions)
{
	uint64_t generation = atomic_load_explicit(&sl_agent->generation, memory_order_relaxed);
	uint64_t before = atomic_load_explicit(&told_for, memory_order_relaxed);
	struct place place = {.address = (uintptr_t)function};
	char value[64];
	struct sl_text text = sl_text_begin(value, sizeof(value));

	if (before == generation || !generation || !atomic_compare_exchange_strong(&told_for, &before, generation))
		return;
	sl_objects_walk(find_path, &place);
	sl_text_add(&text, "c10 ");
	if (!add_version_of(&text, place.path)) {
		text = sl_text_begin(value, sizeof(value));
		sl_text_add(&text, versions);
	}
	sl_capability_write("pytorch", value);
	if (!sl_resolve_symbol(SET_FRACTION))
		sl_capability_write("memory_fraction", "not seen");
}

/* --- what was asked ----------------------------------------------------------------------------------------
 *
 * On the way to a block the allocator calls CUDAStream::stream() on the same thread and through its PLT.  From 512 bytes on it also
 * calls roundup_power2_divisions(size) with the requested size.  Then it reports.  Every kernel launch calls stream() too: the last
 * answer counts.
 */
static __thread struct {
	uint64_t bytes, stream;
	bool sized, streamed;
} asked __attribute__((tls_model("initial-exec")));

#define SMALLEST 512 /* bytes that a smaller request gets */

static atomic_uint captures; /* captures of PyTorch's graphs that are under way */

/* Asked of the driver, as PyTorch itself does in the same place.  graph: the driver's, which all streams of one capture share. */
static SL_NOINLINE bool is_captured(uint64_t stream, uint64_t *graph)
{
	int saved = sl_agent_work_begin();
	bool captured = sl_device_capturing(SL_FAMILY_cuda_runtime, stream, graph);

	sl_agent_work_end(saved);
	return captured;
}

/* The graph that the thread's next captured blocks belong to is recorded when it is another than before. */
static SL_NOINLINE bool tell_captured(uint64_t stream)
{
	static __thread uint64_t last_graph __attribute__((tls_model("initial-exec")));
	uint64_t graph;
	bool captured = is_captured(stream, &graph);

	if (captured && graph != last_graph)
		sl_record_block(SL_API_graph_captures, 0, last_graph = graph, -1, 0, 0, NULL, 0);
	return captured;
}

static inline bool take_asked(struct sl_asked *what, uint64_t size)
{
	bool matches = asked.streamed && (asked.sized ? asked.bytes <= size : size == SMALLEST);

	*what = (struct sl_asked){.stream = asked.stream, .object = 1 + (asked.sized ? size - asked.bytes : 0)};
	if (SL_UNLIKELY(atomic_load_explicit(&captures, memory_order_relaxed)))
		what->captured = tell_captured(asked.stream);
	asked.sized = asked.streamed = false;
	return matches;
}

void *asked_stream(const void *) EXPORTED_AS("_ZNK3c104cuda10CUDAStream6streamEv");
void *asked_stream(const void *self)
{
	static struct real real = {.symbol = "_ZNK3c104cuda10CUDAStream6streamEv"};
	void *(*forward)(const void *) = real_of(&real, __builtin_return_address(0));
	void *stream = forward ? forward(self) : NULL;

	asked.stream = (uintptr_t)stream;
	asked.streamed = true;
	return stream;
}

#define ROUNDUP(name, mangled)                                                                                                     \
	uint64_t name(uint64_t) EXPORTED_AS(mangled);                                                                              \
	uint64_t name(uint64_t size)                                                                                               \
	{                                                                                                                          \
		static struct real real = {.symbol = mangled};                                                                     \
		uint64_t (*forward)(uint64_t) = real_of(&real, __builtin_return_address(0));                                       \
                                                                                                                                   \
		asked.bytes = size;                                                                                                \
		asked.sized = true;                                                                                                \
		return forward ? forward(size) : 0;                                                                                \
	}

ROUNDUP(roundup_cuda, "_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig24roundup_power2_divisionsEm") /* 2.2 to 2.9 */
ROUNDUP(roundup_any, "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm")    /* 2.10 on */

/* --- what a block is ---------------------------------------------------------------------------------------
 *
 * A tensor of a device is made by empty_generic() or empty_strided_generic(), which ask the allocator on the same thread.  Other
 * blocks are working memory without a shape.  An exception leaves `made` as it was: only a block of just that size is that tensor.
 */
#define DIMENSIONS 8

static __thread struct {
	int64_t sizes[DIMENSIONS];
	uint64_t bytes; /* 0: no tensor is being made */
	unsigned count;
	uint8_t type; /* 1 + its number */
	char module[96];
} made __attribute__((tls_model("initial-exec")));

static const uint8_t element_bytes[] = {
#define TYPE(number, name, bytes) [number] = bytes,
#include "common/torch_types.def"
#undef TYPE
};

/* strides: NULL where elements lie one behind the other. */
static void note_made(const int64_t *sizes, const int64_t *strides, uint64_t count, uint8_t type)
{
	uint64_t elements = 1, last = 1, element = type < sizeof(element_bytes) ? element_bytes[type] : 0;

	made.bytes = 0;
	if (count > DIMENSIONS || !element)
		return;
	for (uint64_t i = 0; i < count; i++) {
		made.sizes[i] = sizes[i];
		elements *= (uint64_t)sizes[i];
		last += strides ? (uint64_t)(sizes[i] - 1) * (uint64_t)strides[i] : 0;
	}
	made.count = (unsigned)count;
	made.type = (uint8_t)(type + 1);
	made.bytes = (strides && elements ? last : elements) * element;
}

static uint32_t text_of(const char *text, size_t bytes)
{
	uint32_t id;

	sl_agent_begin(&sl_thread);
	id = sl_stacks_text(text, bytes);
	sl_agent_end(&sl_thread);
	return id;
}

/* Records the tensor of the block that follows: each in a dry run, and one of a failed request on a card. */
static SL_NOINLINE void tell_made(uint64_t bytes, const struct sl_asked *asked)
{
	char shape[DIMENSIONS * 21];
	struct sl_text text = sl_text_begin(shape, sizeof(shape));
	struct sl_instant_details what = {0};
	uint64_t exact = asked ? bytes - (asked->object - 1) : bytes;
	int saved;
	uint32_t label = 0;

	if (!sl_agent_attached())
		return;
	if (made.bytes && (exact == made.bytes || (bytes == SMALLEST && made.bytes <= SMALLEST))) {
		for (unsigned i = 0; i < made.count; i++) {
			sl_text_add(&text, i ? " x " : "");
			sl_text_add_number(&text, (uint64_t)made.sizes[i]);
		}
		label = text_of(text.used ? shape : "1", text.used ? text.used : 1);
		what.numbered = made.type;
	}
	made.bytes = 0;
	saved = sl_agent_work_begin();
	what.bytes = sl_stacks_capture(SL_STACKS_NATIVE).native;
	sl_agent_work_end(saved);
	sl_instant_record(SL_API_block_tensor, label, *made.module ? text_of(made.module, strlen(made.module)) : 0, what);
}

void sl_torch_within(const char *module)
{
	struct sl_text text = sl_text_begin(made.module, sizeof(made.module));

	sl_text_add(&text, module ? module : "");
}

#ifdef __x86_64__ /* elsewhere C cannot return an object of C++ by its hidden address */
#define EMPTY "_ZN2at6detail13empty_genericEN3c108ArrayRefIlEEPNS1_9AllocatorENS1_14DispatchKeySetENS1_10ScalarTypeE"

#define MAKE(name, mangled, prototype, arguments, strides)                                                                         \
	void *name prototype EXPORTED_AS(mangled);                                                                                 \
	void *name prototype                                                                                                       \
	{                                                                                                                          \
		static struct real real = {.symbol = mangled};                                                                     \
		void *(*forward)prototype = real_of(&real, __builtin_return_address(0)), *result;                                  \
                                                                                                                                   \
		if (!forward)                                                                                                      \
			__builtin_trap(); /* the dynamic linker would have refused the caller */                                   \
		note_made(sizes, strides, count, (uint8_t)type);                                                                   \
		result = forward arguments;                                                                                        \
		made.bytes = 0;                                                                                                    \
		return result;                                                                                                     \
	}

#define MAKE_PLAIN(name, mangled)                                                                                                  \
	MAKE(name, mangled,                                                                                                        \
	     (void *out, const int64_t *sizes, uint64_t count, void *allocator, uint64_t keys, uint64_t type, uint64_t format),    \
	     (out, sizes, count, allocator, keys, type, format), NULL)

MAKE_PLAIN(empty_new, EMPTY "St8optionalINS1_12MemoryFormatEE") /* 2.5 on */
MAKE_PLAIN(empty_old, EMPTY "NS1_8optionalINS1_12MemoryFormatEEE")
MAKE(empty_strided,
     "_ZN2at6detail21empty_strided_genericEN3c108ArrayRefIlEES3_PNS1_9AllocatorENS1_14DispatchKeySetENS1_10ScalarTypeE",
     (void *out, const int64_t *sizes, uint64_t count, const int64_t *strides, uint64_t stride_count, void *allocator,
      uint64_t keys, uint64_t type),
     (out, sizes, count, strides, stride_count, allocator, keys, type), strides)
#endif

/*
 * Settings may change while the program runs; each change is recorded as a mark with its text, numbers and all.  A std::string
 * begins with the address of its text.
 */
static void tell_settings(const char *const *settings)
{
	static const struct sl_instant_details none;
	uint32_t id;

	if (!settings || !*settings || !sl_preload_running() || !sl_agent_attached())
		return;
	sl_agent_begin(&sl_thread);
	id = sl_stacks_text(*settings, strlen(*settings));
	sl_agent_end(&sl_thread);
	if (id)
		sl_instant_record(SL_API_torch_settings, id, 0, none);
}

#define SETTINGS(name, mangled, proto, args)                                                                                       \
	void name proto EXPORTED_AS(mangled);                                                                                      \
	void name proto                                                                                                            \
	{                                                                                                                          \
		static struct real real = {.symbol = mangled};                                                                     \
		void(*forward) proto = real_of(&real, __builtin_return_address(0));                                                \
                                                                                                                                   \
		if (forward)                                                                                                       \
			forward args;                                                                                              \
		tell_settings(text);                                                                                               \
	}

#define STRING "RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
SETTINGS(settings_old, "_ZN3c104cuda20CUDACachingAllocator20setAllocatorSettingsERKSs", (const char *const *text), (text))
SETTINGS(settings_cuda, "_ZN3c104cuda20CUDACachingAllocator20setAllocatorSettingsE" STRING, (const char *const *text), (text))
SETTINGS(settings_any, "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig9parseArgsE" STRING,
	 (void *self, const char *const *text), (self, text))

/* --- private pools -----------------------------------------------------------------------------------------
 *
 * While a graph captures a stream, blocks for that stream come from a private pool: the graph's own, or the one whose name (two
 * numbers) was given to capture_begin.  The graph's own pool gets a name when the program asks for it.  These functions throw
 * when they fail, and then nothing is recorded.  A pair is passed and returned in two registers, as a struct is.
 */
struct pool_name {
	uint64_t first, second;
};

static void tell_pool(unsigned api, const void *object, struct pool_name pool, uint64_t more)
{
	if (sl_tensors_wanted())
		sl_record_block(api, (uintptr_t)object, pool.first, sl_device_current(SL_FAMILY_cuda_runtime).device, pool.second,
				more, NULL, 0);
}

static const struct pool_name no_name;

void graph_begin(void *, struct pool_name, int)
	EXPORTED_AS("_ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode");
void graph_begin(void *self, struct pool_name pool, int mode)
{
	static struct real real = {.symbol = "_ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode"};
	void (*forward)(void *, struct pool_name, int) = real_of(&real, __builtin_return_address(0));
	uint64_t graph = 0;

	if (forward)
		forward(self, pool, mode);
	if (asked.streamed) /* it was asked last for the stream that is captured from now on */
		is_captured(asked.stream, &graph);
	tell_pool(SL_API_graph_begin, self, pool, graph);
	atomic_fetch_add_explicit(&captures, 1, memory_order_relaxed);
}

/* From 2.14 on Python calls capture_end_pre alone, and C++ capture_end, which may call capture_end_pre: the inner one counts. */
static __thread unsigned ended __attribute__((tls_model("initial-exec")));

#define END(name, mangled)                                                                                                         \
	void name(void *) EXPORTED_AS(mangled);                                                                                    \
	void name(void *self)                                                                                                      \
	{                                                                                                                          \
		static struct real real = {.symbol = mangled};                                                                     \
		void (*forward)(void *) = real_of(&real, __builtin_return_address(0));                                             \
		unsigned before = ended;                                                                                           \
                                                                                                                                   \
		if (forward)                                                                                                       \
			forward(self);                                                                                             \
		if (ended != before)                                                                                               \
			return;                                                                                                    \
		ended++;                                                                                                           \
		if (atomic_load_explicit(&captures, memory_order_relaxed))                                                         \
			atomic_fetch_sub_explicit(&captures, 1, memory_order_relaxed);                                             \
		tell_pool(SL_API_graph_end, self, no_name, 0);                                                                     \
	}

END(graph_end, "_ZN2at4cuda9CUDAGraph11capture_endEv")
END(graph_end_half, "_ZN2at4cuda9CUDAGraph15capture_end_preEv")

/*
 * Virtual functions decide who allocates to a torch.cuda.MemPool, and use_mem_pool asks for the pool's name before each of
 * them.  That request is recorded; the Python stack tells which of them follows.
 */
#define NAME(name, mangled, api)                                                                                                   \
	struct pool_name name(void *) EXPORTED_AS(mangled);                                                                        \
	struct pool_name name(void *self)                                                                                          \
	{                                                                                                                          \
		static struct real real = {.symbol = mangled};                                                                     \
		struct pool_name (*forward)(void *) = real_of(&real, __builtin_return_address(0)), pool = no_name;                 \
                                                                                                                                   \
		if (forward)                                                                                                       \
			pool = forward(self);                                                                                      \
		tell_pool(api, self, pool, 0);                                                                                     \
		return pool;                                                                                                       \
	}

NAME(graph_pool, "_ZN2at4cuda9CUDAGraph4poolEv", SL_API_graph_pool)
NAME(pool_id_c10, "_ZN3c104cuda7MemPool2idEv", SL_API_pool_name) /* 2.5 to 2.9 */
NAME(pool_id_aten, "_ZN2at4cuda7MemPool2idEv", SL_API_pool_name)

void graph_retains(void *, struct pool_name) EXPORTED_AS("_ZN2at4cuda9CUDAGraph11retain_poolESt4pairIyyE");
void graph_retains(void *self, struct pool_name pool)
{
	static struct real real = {.symbol = "_ZN2at4cuda9CUDAGraph11retain_poolESt4pairIyyE"};
	void (*forward)(void *, struct pool_name) = real_of(&real, __builtin_return_address(0));

	if (forward)
		forward(self, pool);
	tell_pool(SL_API_graph_retains, self, pool, 0);
}

/*
 * The constructor has two to four arguments, by release: the allocator that the pool's memory comes from; whether the program makes
 * the pool, which is true here; and up to two ways in which the pool differs from others.  Later the allocator is a shared_ptr.
 */
#define MADE(name, mangled, arguments, pointer)                                                                                    \
	void name(void *, void *const *, uint64_t, uint64_t, uint64_t) EXPORTED_AS(mangled);                                       \
	void name(void *self, void *const *allocator, uint64_t by_program, uint64_t a, uint64_t b)                                 \
	{                                                                                                                          \
		static struct real real = {.symbol = mangled};                                                                     \
		void (*forward)(void *, void *const *, uint64_t, uint64_t, uint64_t) =                                             \
			real_of(&real, __builtin_return_address(0));                                                               \
		bool differs = pointer || ((arguments) > 2 && (uint8_t)a) || ((arguments) > 3 && (uint8_t)b);                      \
                                                                                                                                   \
		if (forward)                                                                                                       \
			forward(self, allocator, by_program, a, b);                                                                \
		tell_pool(SL_API_pool_made, self, no_name, differs);                                                               \
	}

MADE(pool_user, "_ZN3c104cuda7MemPoolC1EPNS0_20CUDACachingAllocator13CUDAAllocatorEb", 2, allocator)
MADE(pool_oom, "_ZN3c104cuda7MemPoolC1EPNS0_20CUDACachingAllocator13CUDAAllocatorEbb", 3, allocator)
MADE(pool_aten, "_ZN2at4cuda7MemPoolC1EPN3c104cuda20CUDACachingAllocator13CUDAAllocatorEbb", 3, allocator)
MADE(pool_unsplit, "_ZN2at4cuda7MemPoolC1EPN3c104cuda20CUDACachingAllocator13CUDAAllocatorEbbb", 4, allocator)
MADE(pool_shared, "_ZN2at4cuda7MemPoolC1ESt10shared_ptrIN3c104cuda20CUDACachingAllocator13CUDAAllocatorEEbbb", 4, *allocator)

/* A graph's reset(), and its destructor, which resets.  A pool's destructor, which frees what it can: an event before and after. */
#define GONE(name, mangled, api, is_pool)                                                                                          \
	void name(void *) EXPORTED_AS(mangled);                                                                                    \
	void name(void *self)                                                                                                      \
	{                                                                                                                          \
		static struct real real = {.symbol = mangled};                                                                     \
		void (*forward)(void *) = real_of(&real, __builtin_return_address(0));                                             \
                                                                                                                                   \
		if (is_pool)                                                                                                       \
			tell_pool(api, self, no_name, 0);                                                                          \
		if (forward)                                                                                                       \
			forward(self);                                                                                             \
		tell_pool(api, self, no_name, is_pool);                                                                            \
	}

GONE(graph_reset, "_ZN2at4cuda9CUDAGraph5resetEv", SL_API_graph_gone, false)
GONE(graph_gone, "_ZN2at4cuda9CUDAGraphD1Ev", SL_API_graph_gone, false)
GONE(pool_gone_c10, "_ZN3c104cuda7MemPoolD1Ev", SL_API_pool_gone, true)
GONE(pool_gone_aten, "_ZN2at4cuda7MemPoolD1Ev", SL_API_pool_gone, true)

#define ALLOCATOR "libc10_" /* cuda, hip */

static int is_allocator(struct dl_phdr_info *info, size_t size, void *data)
{
	return info->dlpi_name && strstr(info->dlpi_name, ALLOCATOR);
}

/*
 * torch._C._cuda_setMemoryFraction(fraction, device).  Python finds it in a table that the linker fills by exported name,
 * so it finds ours.  It is called with the GIL, and after a success the arguments have the right types.
 */
static __thread bool told_of_fraction __attribute__((tls_model("initial-exec")));

static void tell_fraction(void *arguments)
{
	void *(*get)(void *, intptr_t) = (void *(*)(void *, intptr_t))sl_resolve_symbol("PyTuple_GetItem");
	double (*number)(void *) = (double (*)(void *))sl_resolve_symbol("PyFloat_AsDouble"), fraction;
	long (*integer)(void *) = (long (*)(void *))sl_resolve_symbol("PyLong_AsLong");
	uint64_t bits = 0;
	long device = sl_device_current(SL_FAMILY_cuda_runtime).device;

	if (get && number && integer) {
		fraction = number(get(arguments, 0));
		device = integer(get(arguments, 1));
		memcpy(&bits, &fraction, sizeof(bits));
	}
	sl_record_block(SL_API_torch_fraction, bits, 0, (int)device, 0, 0, NULL, 0);
}

void *set_fraction(void *, void *) EXPORTED_AS(SET_FRACTION);
void *set_fraction(void *self, void *arguments)
{
	static struct real real = {.symbol = SET_FRACTION};
	void *(*forward)(void *, void *) = real_of(&real, __builtin_return_address(0)), *result = NULL;

	told_of_fraction = true;
	if (forward)
		result = forward(self, arguments);
	told_of_fraction = false;
	if (result && sl_preload_running())
		tell_fraction(arguments);
	return result;
}

/*
 * For a fraction that is set another way.  set_per_process_memory_fraction is virtual, but up to PyTorch 2.9 it asks for
 * the size of the device, which we see.  The value is then read from the Python function of that name, which accepts only
 * a float.  The event's address holds the bits of the double, 0 where they are not known.
 */
bool sl_torch_sets_fraction(enum sl_family family, const void *caller)
{
	struct place place = {.address = (uintptr_t)caller};
	uint64_t bits = 0;
	double fraction;
	bool is_set, read;

	if (told_of_fraction)
		return true;
	if (!sl_objects_walk(is_allocator, NULL) || !sl_preload_running())
		return false;
	sl_agent_begin(&sl_thread);
	is_set = sl_stacks_argument("set_per_process_memory_fraction", &fraction, &read);
	sl_agent_end(&sl_thread);
	if (!is_set)
		return false;
	if (read)
		memcpy(&bits, &fraction, sizeof(bits));
	sl_objects_walk(find_path, &place);
	if (place.path && strstr(place.path, ALLOCATOR)) /* not the runtime, which passes the question on to the driver */
		sl_record_block(SL_API_torch_fraction, bits, 0, sl_device_current(family).device, 0, 0, NULL, 0);
	return true;
}

/* --- events that a freed block waits for -------------------------------------------------------------------
 */

struct sl_torch_code sl_torch_code;

void sl_torch_event_seen(unsigned api, uint64_t event)
{
	if (sl_tensors_wanted())
		sl_record_block(api, event, 0, -1, 0, 0, NULL, 0);
}

/* --- blocks ------------------------------------------------------------------------------------------------
 */

static SL_NOINLINE void note_type(int type)
{
	static atomic_flag noted;
	char text[96];
	struct sl_text note = sl_text_begin(text, sizeof(text));

	if (atomic_flag_test_and_set(&noted))
		return;
	sl_text_add(&note, "PyTorch blocks on devices of type ");
	sl_text_add_number(&note, (uint64_t)type);
	sl_text_add(&note, " are not recorded");
	sl_define_note(text);
}

/* True when a block on this device is to be recorded; `ordinal` is the device as in the trace, -1 the CPU. */
static inline bool wanted(uint64_t device, int *ordinal)
{
	int type = (int8_t)device;

	*ordinal = type == DEVICE_CPU ? -1 : (int8_t)(device >> 8);
	if (type == DEVICE_CPU && !sl_tensors_of_cpu())
		return false;
	if (!sl_tensors_wanted())
		return false;
	if (type != DEVICE_CPU && type != DEVICE_CUDA && type != DEVICE_HIP) {
		note_type(type);
		return false;
	}
	return true;
}

/* Once: finds the allocator's library, which is the one that reports a device's block. */
static SL_NOINLINE void learn_code(const void *caller)
{
	struct place place = {.address = (uintptr_t)caller};

	sl_objects_walk(find_path, &place);
	__atomic_store_n(&sl_torch_code.begin, place.begin, __ATOMIC_RELAXED);
	__atomic_store_n(&sl_torch_code.bytes, place.bytes, __ATOMIC_RELAXED);
}

/* True: blocks of this kind of device were recorded by this thread before, and the rare work at the first of them is done. */
static inline bool is_steady(int type)
{
	const struct sl_agent_thread *thread = &sl_thread;

	return SL_LIKELY(thread->steady == atomic_load_explicit(&sl_agent->generation, memory_order_relaxed)) &&
	       (type == DEVICE_CUDA || type == DEVICE_HIP ? thread->steady_device : type == DEVICE_CPU && thread->steady_host);
}

static SL_NOINLINE void record_and_settle(struct real *real, const char *versions, unsigned api, uint64_t block, uint64_t bytes,
					  int ordinal, uint64_t allocated, uint64_t reserved, const struct sl_asked *request,
					  const void *caller)
{
	struct sl_agent_thread *thread = &sl_thread;
	uint64_t generation;

	if (api == SL_API_block_alloc && ordinal >= 0 && SL_UNLIKELY(!__atomic_load_n(&sl_torch_code.bytes, __ATOMIC_RELAXED)))
		learn_code(caller);
	sl_record_block(api, block, bytes, ordinal, allocated, reserved, request, 0);
	generation = atomic_load_explicit(&sl_agent->generation, memory_order_relaxed);
	if (SL_UNLIKELY(atomic_load_explicit(&told_for, memory_order_relaxed) != generation))
		tell_version(sl_objects_kept(&real->cached, atomic_load_explicit(&sl_objects_unloads, memory_order_relaxed)),
			     versions);
	if (!generation || thread->generation != generation)
		return;
	if (thread->steady != generation)
		thread->steady_host = thread->steady_device = false;
	if (ordinal < 0)
		thread->steady_host = true;
	else
		thread->steady_device = __atomic_load_n(&sl_torch_code.bytes, __ATOMIC_RELAXED);
	thread->steady = generation;
}

static inline __attribute__((always_inline)) void report(struct real *real, const char *versions, void *block, int64_t size,
							 uint64_t allocated, uint64_t reserved, uint64_t device, const void *caller)
{
	unsigned api = size > 0 ? SL_API_block_alloc : SL_API_block_free;
	uint64_t bytes = (uint64_t)(size > 0 ? size : -size);
	struct sl_asked what, *request = NULL;
	bool steady = is_steady((int8_t)device);
	int ordinal = (int8_t)device == DEVICE_CPU ? -1 : (int8_t)(device >> 8);

	if (!size || (SL_UNLIKELY(!steady) && !wanted(device, &ordinal)))
		return;
	if (size > 0 && ordinal >= 0) {
		request = take_asked(&what, bytes) ? &what : NULL;
		if (SL_UNLIKELY(sl_agent->dry))
			tell_made(bytes, request);
	}
	if (!(SL_LIKELY(steady) &&
	      SL_LIKELY(sl_record_block_again(api, (uintptr_t)block, bytes, ordinal, allocated, reserved, request))))
		record_and_settle(real, versions, api, (uintptr_t)block, bytes, ordinal, allocated, reserved, request, caller);
}

/* A report with the allocator's totals after the operation.  Versions differ only in the name of the totals' type. */
#define REPORT(name, mangled, versions)                                                                                            \
	void name(void *, int64_t, uint64_t, uint64_t, uint64_t) EXPORTED_AS(mangled);                                             \
	void name(void *block, int64_t size, uint64_t allocated, uint64_t reserved, uint64_t device)                               \
	{                                                                                                                          \
		static struct real real = {.symbol = mangled};                                                                     \
		void (*forward)(void *, int64_t, uint64_t, uint64_t, uint64_t) = real_of(&real, __builtin_return_address(0));      \
                                                                                                                                   \
		if (forward)                                                                                                       \
			forward(block, size, allocated, reserved, device);                                                         \
		report(&real, versions, block, size, allocated, reserved, device, __builtin_return_address(0));                    \
	}

REPORT(report_signed, "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE", "c10 1.10 to 2.0")
REPORT(report_unsigned, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", "c10 2.1 or later")

/* 1.6 to 1.9: without totals. */
void report_plain(void *, int64_t, uint64_t) EXPORTED_AS("_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE");
void report_plain(void *block, int64_t size, uint64_t device)
{
	static struct real real = {.symbol = "_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE"};
	void (*forward)(void *, int64_t, uint64_t) = real_of(&real, __builtin_return_address(0));

	if (forward)
		forward(block, size, device);
	report(&real, "c10 1.6 to 1.9", block, size, 0, 0, device, __builtin_return_address(0));
}

static void out_of_memory(uint64_t size, int ordinal, uint64_t allocated, uint64_t reserved)
{
	struct sl_asked what, *request = take_asked(&what, size) ? &what : NULL;

	if (ordinal >= 0 && (made.bytes || *made.module))
		tell_made(size, request);
	sl_record_block(SL_API_block_oom, 0, size, ordinal, allocated, reserved, request, 0);
}

#define REPORT_OOM(name, mangled)                                                                                                  \
	void name(uint64_t, uint64_t, uint64_t, uint64_t) EXPORTED_AS(mangled);                                                    \
	void name(uint64_t size, uint64_t allocated, uint64_t reserved, uint64_t device)                                           \
	{                                                                                                                          \
		static struct real real = {.symbol = mangled};                                                                     \
		void (*forward)(uint64_t, uint64_t, uint64_t, uint64_t) = real_of(&real, __builtin_return_address(0));             \
		int ordinal;                                                                                                       \
                                                                                                                                   \
		if (forward)                                                                                                       \
			forward(size, allocated, reserved, device);                                                                \
		if (wanted(device, &ordinal))                                                                                      \
			out_of_memory(size, ordinal, allocated, reserved);                                                         \
	}

REPORT_OOM(oom_signed, "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE")
REPORT_OOM(oom_mixed, "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE")
REPORT_OOM(oom_unsigned, "_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE")

/* What the CPU's allocators ask before they report a block. */
bool memory_profiling_enabled(void) EXPORTED_AS("_ZN3c1022memoryProfilingEnabledEv");
bool memory_profiling_enabled(void)
{
	static struct real real = {.symbol = "_ZN3c1022memoryProfilingEnabledEv"};
	bool (*forward)(void) = real_of(&real, __builtin_return_address(0));

	return sl_tensors_of_cpu() || (forward && forward());
}

/* --- backward ----------------------------------------------------------------------------------------------
 */

/*
 * Engine::execute(roots, inputs, keep_graph, create_graph[, accumulate_grad], outputs) returns a vector; a struct of the same
 * size is returned in the same way.
 *
 * It may throw, for example out of memory.  The unwinder then calls our frame's personality function, which closes the pass and
 * lets the unwinding go on.  So there is no handler and no landing pad, and nothing of libgcc_s is needed.
 */
enum { CLEANUP_PHASE = 2, CONTINUE_UNWIND = 8 }; /* _UA_CLEANUP_PHASE, _URC_CONTINUE_UNWIND */

int sl_torch_unwound(int version, int actions, uint64_t class, void *exception, void *context);
__attribute__((used)) int sl_torch_unwound(int version, int actions, uint64_t class, void *exception, void *context)
{
	if (actions & CLEANUP_PHASE)
		sl_labels_backward_end();
	return CONTINUE_UNWIND;
}

/* DW_EH_PE_pcrel | DW_EH_PE_sdata4: the function itself, which is in this object. */
#define ENDS_WHEN_UNWOUND __asm__ volatile(".cfi_personality 0x1b, sl_torch_unwound")

#define EXECUTE_NAME "_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_EE"

struct vector {
	void *begin, *end, *limit;
};

#define EXECUTE(name, mangled, prototype, arguments)                                                                               \
	struct vector name prototype EXPORTED_AS(mangled);                                                                         \
	struct vector name prototype {                                                                                             \
		static struct real real = {.symbol = mangled};                                                                     \
		struct vector(*forward) prototype = real_of(&real, __builtin_return_address(0)), result;                           \
                                                                                                                                   \
		ENDS_WHEN_UNWOUND;                                                                                                 \
		if (!forward)                                                                                                      \
			__builtin_trap(); /* the dynamic linker would have refused the caller */                                   \
		sl_labels_backward_begin(SL_API_backward_begin, SL_API_backward_end);                                              \
		result = forward arguments;                                                                                        \
		sl_labels_backward_end();                                                                                          \
		return result;                                                                                                     \
	}

EXECUTE(execute_accumulate, EXECUTE_NAME "bbbS7_",
	(void *engine, void *roots, void *inputs, int keep, int create, int accumulate, void *outputs),
	(engine, roots, inputs, keep, create, accumulate, outputs))
EXECUTE(execute_plain, EXECUTE_NAME "bbS7_", (void *engine, void *roots, void *inputs, int keep, int create, void *outputs),
	(engine, roots, inputs, keep, create, outputs))
