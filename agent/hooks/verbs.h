/* SPDX-License-Identifier: MIT */
/*
 * How the rows of hooks/ are written.  Each verb is a ROW of its name.  A file that expands a table of rows defines ROW,
 * ALSO, LOOKUP, QUERY and the rest first.  all.def undefines them behind its last row.
 *
 *	VERB(ret, name, (prototype), (arguments), .field = ..., ...)
 *	VERB(kind, ret, name, ...)		where the verb concerns memory: kind from common/events.def
 *	ONCE(verb, ret, name, (prototype), (arguments), known before, known answer, .field = ..., ...)	a call that changes nothing
 *			where it was made before (call/known.c)
 *	ALSO(verb, kind, ret, name, tag)	a second meaning of the row above, chosen by its .api, or for each of its .more
 *	LOOKUP(ret, name, (prototype), (arguments), statement after success)
 *	RANGE(verb, ret, name, (prototype), (arguments), what it means)		nvtx.def
 *	INJECTED(ret, name, (prototype), (arguments), call)			injection.def
 *	FRAMEWORK(verb, ret, name, (prototype), (arguments), before, after)	of a framework's own allocator; `before` and
 *			`after` are statements
 *	SLOT(verb, number, name, ...)	a place in a table of PJRT's, expanded by pjrt_table.c too
 *	HAND(verb, kind, id, "name")	a wrapper written by hand, as torch.c's: SL_API_<id>
 *	CHECKED(ret, name, (prototype), (arguments))	forwarded; recorded as a CALL where it returns out of memory
 *	LAUNCHED(ret, name, (prototype), (arguments), kernel)	CHECKED; a CODE_LOAD (the ALSO row below) where
 *			the thread has just looked the kernel up
 *	PER_THREAD(suffix, VERB, (what is before the name), name, ...)	two exports that do the same: name, and name with
 *			_ptsz, _ptds or _spt, which programs built with a default stream per thread call instead
 *	QUERY(ret, name, (prototype), (arguments), device, free, total)	pointers to clamp under --limit; NULL none
 */
#pragma once

#define PER_THREAD(suffix, verb, before, name, ...)                                                                                \
	verb(WITHOUT_PARENTHESES before, name, __VA_ARGS__) verb(WITHOUT_PARENTHESES before, name##suffix, __VA_ARGS__)
#define WITHOUT_PARENTHESES(...) __VA_ARGS__

#define CALL(...)	     ROW(CALL, none, __VA_ARGS__)
#define ALLOC(...)	     ROW(ALLOC, __VA_ARGS__)
#define FREE(...)	     ROW(FREE, __VA_ARGS__)
#define RESERVE(...)	     ROW(RESERVE, none, __VA_ARGS__)
#define UNRESERVE(...)	     ROW(UNRESERVE, none, __VA_ARGS__)
#define MAP(...)	     ROW(MAP, __VA_ARGS__)
#define UNMAP(...)	     ROW(UNMAP, __VA_ARGS__)
#define RETAIN(...)	     ROW(RETAIN, __VA_ARGS__)
#define EXPORT(...)	     ROW(EXPORT, __VA_ARGS__)
#define POOL_CREATE(...)     ROW(POOL_CREATE, pool, __VA_ARGS__)
#define POOL_DESTROY(...)    ROW(POOL_DESTROY, pool, __VA_ARGS__)
#define POOL_SET(...)	     ROW(POOL_SET, pool, __VA_ARGS__)
#define POOL_TRIM(...)	     ROW(POOL_TRIM, pool, __VA_ARGS__)
#define CONTEXT_CREATE(...)  ROW(CONTEXT_CREATE, none, __VA_ARGS__)
#define CONTEXT_DESTROY(...) ROW(CONTEXT_DESTROY, none, __VA_ARGS__)
#define PRIMARY_RETAIN(...)  ROW(PRIMARY_RETAIN, none, __VA_ARGS__)
#define PRIMARY_RELEASE(...) ROW(PRIMARY_RELEASE, none, __VA_ARGS__)
#define DEVICE_RESET(...)    ROW(DEVICE_RESET, none, __VA_ARGS__)
#define MODULE_LOAD(...)     ROW(MODULE_LOAD, none, __VA_ARGS__)
#define MODULE_UNLOAD(...)   ROW(MODULE_UNLOAD, none, __VA_ARGS__)
#define CODE_LOAD(ret, name, proto, args, what, handle, ...)                                                                       \
	ONCE(CODE_LOAD, ret, name, proto, args, sl_known_code(what), sl_known_answer(what, handle, is_known), .address = handle,   \
	     __VA_ARGS__)
#define SET_DEVICE(ret, name, proto, args, device)                                                                                 \
	ONCE(CALL, ret, name, proto, args, sl_known_device(device, false), sl_known_device(device, true),                          \
	     .device_plus_one = (device) + 1)
#define CAPTURE(...)	       LOOKUP(__VA_ARGS__, sl_vendor_captures = true)
#define LIMIT(...)	       ROW(LIMIT, none, __VA_ARGS__)
#define GRAPH_ALLOC(...)       ROW(GRAPH_ALLOC, graph, __VA_ARGS__)
#define GRAPH_FREE(...)	       ROW(GRAPH_FREE, graph, __VA_ARGS__)
#define GRAPH_CREATE(...)      ROW(GRAPH_CREATE, none, __VA_ARGS__)
#define GRAPH_INSTANTIATE(...) ROW(GRAPH_INSTANTIATE, none, __VA_ARGS__)
#define GRAPH_LAUNCH(...)      ROW(GRAPH_LAUNCH, none, __VA_ARGS__)
#define GRAPH_DESTROY(...)     ROW(GRAPH_DESTROY, none, __VA_ARGS__)
#define EXEC_DESTROY(...)      ROW(EXEC_DESTROY, none, __VA_ARGS__)
#define GRAPH_TRIM(...)	       ROW(GRAPH_TRIM, none, __VA_ARGS__)
#define STREAM_CREATE(...)     ROW(STREAM_CREATE, none, __VA_ARGS__)
#define STREAM_DESTROY(...)    ROW(STREAM_DESTROY, none, __VA_ARGS__)
#define EVENT_CREATE(...)      ROW(EVENT_CREATE, none, __VA_ARGS__)
#define EVENT_DESTROY(...)     ROW(EVENT_DESTROY, none, __VA_ARGS__)
#define EXTERNAL_IMPORT(...)   ROW(EXTERNAL_IMPORT, none, __VA_ARGS__)
#define EXTERNAL_DESTROY(...)  ROW(EXTERNAL_DESTROY, none, __VA_ARGS__)
