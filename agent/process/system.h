/* SPDX-License-Identifier: MIT */
/* What the machine is, as `stormlog-analyze info` says it: by system calls on small files of the kernel, no GPU is asked. */
#pragma once

#include "common/pack.h"

/*
 * A map of texts: kernel, architecture, distribution (of this process's root), cpus, memory_bytes, nvidia_driver, amdgpu; what is
 * not known is left out.
 */
void sl_system_pack(struct sl_pack *pack);
