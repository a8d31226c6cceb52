/* SPDX-License-Identifier: MIT */
/*
 * What events name by number: texts, stacks, modules, threads, devices (doc/trace-format.md, Maps).  All of it is read before
 * the first event.  Its size grows with the variety of the program, not with the length of the run.  Ids that were never
 * defined (damaged traces) give NULL.  Texts and stacks are in the pool (analyzer/base/pool.h), which the caller has entered.
 */
#pragma once

#include <stdbool.h>

#include "analyzer/base/vector.h"
#include "analyzer/trace/idmap.h"
#include "analyzer/trace/object.h"
#include "analyzer/trace/mapped.h"

struct sl_python_frame {
	const char *function;
	uint32_t file, line; /* file: index, read by sl_defs_file */
};

struct sl_python_stack {
	uint32_t count, boundary_count;
	const uint32_t *frames;	    /* ids, innermost first */
	const uint32_t *boundaries; /* indexes of frames that were entered from C */
	bool truncated;		    /* the outermost frames are missing */
};

struct sl_native_stack {
	uint32_t count;
	const uint64_t *pcs; /* return addresses, innermost first */
	bool truncated;
};

struct sl_module {
	uint64_t base, end, ns;	     /* ns: when it was there; 0: not known */
	const char *path, *build_id; /* NULL: unknown */
};

/* Which object came to a place, and when. */
struct sl_arrival {
	uint64_t ns;
	struct sl_mapped_range place;
};

/* A range of addresses from `begin` to the next span's. */
struct sl_module_span {
	uint64_t begin;
	int module; /* index of the module; -1: none */
};

/* A function at an address, or one it was inlined into. */
struct sl_symbol {
	const char *function, *file; /* NULL: unknown */
	uint32_t line;
};
#define SL_SYMBOL_DEPTH 64 /* functions at one address; std::make_shared alone takes 7, and the outer ones are the program's */

/* What a pack says of an address: its names, looked up where the libraries were. */
struct sl_named {
	uint64_t pc;
	const struct sl_symbol *symbols; /* innermost first */
	uint32_t count;
};

struct sl_eval_range {
	uint64_t begin, end;
};

struct sl_device {
	int64_t ordinal;
	const char *family, *name, *uuid, *pci; /* NULL: unknown */
	uint64_t total_bytes;			/* 0: unknown */
};

struct sl_thread {
	uint32_t id;
	int64_t tid;
	const char *name;
};

struct sl_communicator {
	uint64_t handle, ns;
	int64_t rank, world_size, device;
	const char *name;
};

struct sl_capability {
	const char *name, *value;
};

/* Metadata that the program gave while it ran, in addition to the header's. */
struct sl_said {
	const char *key, *value;
};

#define SL_DEFS_FEW 1024 /* devices, evaluated ranges, capabilities, notes, keys of metadata */

struct sl_defs {
	struct sl_arena arena;
	struct sl_idmap text_ids, frame_ids, python_ids, native_ids, thread_ids, communicator_ids, named_ids;
	SL_VECTOR(const char *) texts;
	SL_VECTOR(struct sl_python_frame) frames;
	SL_VECTOR(const char *) files; /* of frames, each once */
	struct sl_idmap file_ids;      /* by address in the pool; empty while `shared` */
	SL_VECTOR(struct sl_python_stack) pythons;
	SL_VECTOR(struct sl_native_stack) natives;
	SL_VECTOR(struct sl_named) named;
	SL_VECTOR(struct sl_module) modules; /* each once, at the addresses of its place */
	uint64_t ahead_ns;		     /* Unix time less the trace's; 0: not known */
	struct sl_mapped mapped;	     /* at the last definition that was read */
	struct sl_idmap module_ids;	     /* by what and where it is */
	SL_VECTOR(struct sl_arrival) arrivals;
	uint32_t moved;				/* modules that came where another one was */
	bool left;				/* a module went */
	SL_VECTOR(struct sl_module_span) spans; /* for as many modules as spans_of says; made when first needed */
	size_t spans_of;
	unsigned cut_names, left_out; /* left_out: entries beyond SL_DEFS_FEW in lists that are short in honest traces */
	bool shared;		      /* frames, pythons and their ids belong to the pool */
	SL_VECTOR(struct sl_eval_range) evals;
	SL_VECTOR(struct sl_device) devices;
	SL_VECTOR(struct sl_thread) threads;
	SL_VECTOR(struct sl_communicator) communicators;
	SL_VECTOR(struct sl_capability) capabilities; /* each name once, with its last value */
	SL_VECTOR(const char *) notes;
	SL_VECTOR(struct sl_said) metadata; /* each key once, with its last value */
};

/* Takes one map; false: it is not a definition. */
bool sl_defs_add(struct sl_defs *defs, const msgpack_object *map);
/* After the last definition: processes with the same stacks in the same order then share them. */
void sl_defs_share(struct sl_defs *defs);
void sl_defs_free(struct sl_defs *defs);

/* What the program gave for a key of metadata while it ran; NULL: nothing. */
struct sl_said *sl_defs_said(const struct sl_defs *defs, const char *key);

const char *sl_defs_text(const struct sl_defs *defs, uint64_t id);
/* Notes that the module is at its place from now on; gone: that nothing is there any more. */
void sl_defs_add_module(struct sl_defs *defs, const struct sl_module *module, bool gone);
/* Forgets the stacks defined after these; 0: all. */
void sl_defs_cut(struct sl_defs *defs, uint64_t python, uint64_t native);

const struct sl_python_frame *sl_defs_frame(const struct sl_defs *defs, uint64_t id);
const char *sl_defs_file(const struct sl_defs *defs, const struct sl_python_frame *frame); /* NULL: unknown */
const struct sl_python_stack *sl_defs_python(const struct sl_defs *defs, uint64_t id);
const struct sl_native_stack *sl_defs_native(const struct sl_defs *defs, uint64_t id);
const struct sl_thread *sl_defs_thread(const struct sl_defs *defs, uint64_t id);
const struct sl_device *sl_defs_device(const struct sl_defs *defs, int64_t ordinal);
const char *sl_defs_capability(const struct sl_defs *defs, const char *name);

/* What a pack says is at pc; NULL: nothing. */
const struct sl_named *sl_defs_named(const struct sl_defs *defs, uint64_t pc);

/* The address made unique in the trace (mapped.h).  Addresses of stacks, and of events that an order gives, are so already. */
static inline uint64_t sl_defs_address(const struct sl_defs *defs, const struct sl_mapped *mapped, uint64_t address)
{
	return defs->moved || defs->left ? sl_mapped_address(mapped, address) : address;
}

/* Index into modules of the one at the address, or -1. */
int sl_defs_module(const struct sl_defs *defs, uint64_t address);
static inline const struct sl_module *sl_defs_module_at(const struct sl_defs *defs, uint64_t address) /* NULL: none */
{
	int at = address ? sl_defs_module(defs, address) : -1;

	return at < 0 ? NULL : &defs->modules.item[at];
}
