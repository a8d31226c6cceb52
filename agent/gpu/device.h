/* SPDX-License-Identifier: MIT */
/*
 * Memory of devices and of the process: samples, and what can be known when a call runs out of memory.  Everything is published by
 * sl_define_publish as `device`, `sample`, `oom` and `capability` maps (doc/trace-format.md).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/process/options.h"
#include "agent/gpu/vendor.h"
#include "common/event.h"

/*
 * Calling thread, right after a successful real call: notes that device `ordinal` of this family is in use.  Cheap if that is
 * known; the first time the device is described, by calls that need no context.  Without NVML it also takes the samples that are
 * due, by the real cuMemGetInfo.
 */
void sl_device_used(int ordinal, enum sl_family family);

/*
 * Writer thread, every device_interval ms: one sample of the process and its cgroup, stamped now_ns, and one of each device
 * in use, stamped when it was asked.
 */
void sl_device_sample(uint64_t now_ns);

/* Writer thread.  True: a device has come into use since the last call; it is sampled at once. */
bool sl_device_news(void);

/*
 * Writer thread, before the footer: takes a last sample, so that even a short run has figures of its end.  The process is ending,
 * so nothing is opened, and a source that no sample has used is not used now.
 */
void sl_device_sample_last(uint64_t now_ns);

/* Any thread, if there is no writer: samples only the process and its cgroup. */
void sl_device_sample_host(uint64_t now_ns);

/*
 * Calling thread, after the real call returned out of memory; the thread owns a context.  Publishes the `oom`
 * map: free and total by the real cuMemGetInfo/hipMemGetInfo (not during stream capture; not for host scopes),
 * VmSize, RLIMIT_AS, RSS, cgroup.  May make system calls; restores errno.
 */
void sl_device_oom(uint32_t thread, uint64_t seq, int device, enum sl_family family, enum sl_kind kind, uint64_t now_ns);

/* Device and context of the calling thread, by the real driver; cheap, no context is made. */
struct sl_vendor_context sl_device_current(enum sl_family family);

/* Device that owns this address (stream-ordered, managed): cuPointerGetAttribute; -1 unknown. */
int sl_device_of_pointer(enum sl_family family, uint64_t address);

/*
 * Remembers where a pool or stream lies, for the calls that name it alone: device + 1, 0 unknown, SL_NO_DEVICE the host.  Of very
 * many handles some are forgotten.
 */
void sl_device_remember(uint64_t handle, int device_plus_one);

/* Where an allocation from this pool (0: the stream's device's own) on this stream lies, in the same form. */
int sl_device_named(uint64_t pool, uint64_t stream);

/* Size of the block that begins at this address, for imported memory, whose call has no size; 0 unknown. */
uint64_t sl_device_size_of(enum sl_family family, uint64_t address);

/* The stream is being captured: what is allocated or freed on it are nodes of *graph (0 unknown). */
bool sl_device_capturing(enum sl_family family, uint64_t stream, uint64_t *graph);

/* Free bytes of the current device, for the calls that create contexts and modules; 0: not safe to ask now. */
uint64_t sl_device_free_bytes(enum sl_family family);

void sl_device_child(void); /* after fork in the child: forget handles and threads' state */
