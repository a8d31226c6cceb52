/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for TensorFlow's allocator and the annotation of the current op, as in 2.21.  The allocator takes one region of the
 * simulated GPU and gives out blocks one after the other.  Its functions have the mangled names and are called through a table,
 * as virtual functions are.  It writes a journal of its blocks.  With -DOLD the annotation is that of 2.15 to 2.19, with -DASTRAY
 * it has another layout, with -DLACKS no constructor.  -DRENAMED renames both allocator functions, -DALONE only the second.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cudaMalloc(void **pointer, size_t bytes);

#ifdef RENAMED
#define ALLOCATE "_ZN3tsl12BFCAllocator11AllocateRawEmmi"
#else
#define ALLOCATE "_ZN3tsl12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE"
#endif
#if defined(RENAMED) || defined(ALONE)
#define FREE "_ZN3tsl12BFCAllocator13DeallocateRawEPvi"
#else
#define FREE "_ZN3tsl12BFCAllocator13DeallocateRawEPv"
#endif
#define SCOPED "_ZN3tsl8profiler27ScopedMemoryDebugAnnotation"
#ifdef OLD
#define CONSTRUCTOR SCOPED "C2EPKclS3_iOSt8functionIFNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEvEE"
#elif defined(LACKS)
#define CONSTRUCTOR SCOPED "C2Ev"
#else
#define CONSTRUCTOR                                                                                                                \
	SCOPED "C2ESt17basic_string_viewIcSt11char_traitsIcEElS5_iOSt8functionIFNSt7__cxx1112basic_stringIcS4_SaIcEEEvEE"
#endif

struct allocator;
void *allocate(struct allocator *, size_t, size_t, const void *) __asm__(ALLOCATE);
void deallocate(struct allocator *, void *) __asm__(FREE);
void TF_AllocateTensor(void);

struct text {
#ifndef OLD
	size_t bytes;
#endif
	const char *text;
};

struct annotation {
#ifdef ASTRAY
	int64_t priority;
#endif
	struct text op;
	int64_t step;
	struct text region;
	int32_t type;
	void *shape[4];
};

static _Thread_local struct annotation annotation;

struct annotation *find(void) __asm__(SCOPED "27ThreadMemoryDebugAnnotationEv");
struct annotation *find(void)
{
	return &annotation;
}

void construct(struct annotation *, struct text, int64_t, struct text, int32_t, void **) __asm__(CONSTRUCTOR);
void construct(struct annotation *last, struct text op, int64_t step, struct text region, int32_t type, void **shape)
{
	*last = annotation;
	annotation = (struct annotation){.op = op, .step = step, .region = region, .type = type, .shape = {shape[0]}};
}

void destruct(struct annotation *) __asm__(SCOPED "D2Ev");
void destruct(struct annotation *last)
{
	annotation = *last;
}

void TF_AllocateTensor(void)
{
}

static struct text text_of(const char *text)
{
#ifdef OLD
	return (struct text){text};
#else
	return (struct text){text ? strlen(text) : 0, text};
#endif
}

/* Sets the current op; NULL: none. */
static void begin_op(const char *op, const char *region)
{
	annotation = (struct annotation){.op = text_of(op), .region = text_of(region)};
}

struct table {
	void *(*allocate)(struct allocator *, size_t, size_t, const void *);
	void (*deallocate)(struct allocator *, void *);
	void (*begin_op)(const char *, const char *);
};
extern const struct table bfc_table;
const struct table bfc_table = {allocate, deallocate, begin_op};

static const char *op_name(void)
{
	static char name[128];

	snprintf(name, sizeof(name), "%s %s", annotation.op.text, annotation.region.text);
	return annotation.op.text ? name : "";
}

#define REGION ((size_t)64 << 20)
static char *region;
static size_t used;

static FILE *journal(void)
{
	static FILE *file;

	if (!file && getenv("POOLS_JOURNAL"))
		file = fopen(getenv("POOLS_JOURNAL"), "w");
	return file;
}

static void say(const char *what, const void *block, const char *more)
{
	if (!journal())
		return;
	fprintf(journal(), "%s %p %s\n", what, block, more);
	fflush(journal());
}

void *allocate(struct allocator *self, size_t alignment, size_t bytes, const void *attributes)
{
	char *block, more[160];

	(void)self, (void)attributes;
	if (!region && cudaMalloc((void **)&region, REGION))
		return NULL;
	used = (used + alignment - 1) / alignment * alignment;
	if (used + bytes > REGION)
		used = 0;
	block = region + used;
	used += bytes;
	if (journal()) {
		snprintf(more, sizeof(more), "%zu %s", bytes, op_name());
		say("block", block, more);
	}
	return block;
}

void deallocate(struct allocator *self, void *block)
{
	(void)self;
	say("free", block, "");
}
