/* SPDX-License-Identifier: MIT */
/* Describes the machine, for the header of its trace: from small files of the kernel, by system calls.  No GPU is asked. */
#pragma once

#include "common/pack.h"

/*
 * A map of texts: kernel, architecture, distribution (of this process's root), cpus, memory_bytes, nvidia_driver, amdgpu; what is
 * not known is left out.
 */
void sl_system_pack(struct sl_pack *pack);
