/* SPDX-License-Identifier: MIT */
/*
 * Keeps the agent in programs that this one starts.  Trainers set LD_PRELOAD for their workers (torch_memory_saver and the
 * reinforcement learning frameworks around it) and so overwrite what the launcher set; the agent is put in front of the new
 * value. Where LD_PRELOAD is removed, the child runs without the agent, and one note in the trace says so.
 *
 * Safe in a vfork child: no lock, no allocation; the new environment lies on the caller's stack.  Where it would take much of that
 * the stack must be the thread's own: a vfork child may have been given a small one.
 */
#pragma once

#include <alloca.h>
#include <stddef.h>

/* Bytes that sl_children_fill needs; 0: the environment needs no change. */
size_t sl_children_room(char *const *envp);
char *const *sl_children_fill(char *const *envp, void *room, size_t bytes);

/* To be called in the function that passes envp on. */
#define SL_CHILDREN_KEEP(envp)                                                                                                     \
	do {                                                                                                                       \
		size_t room_ = sl_children_room(envp);                                                                             \
                                                                                                                                   \
		if (room_)                                                                                                         \
			envp = sl_children_fill(envp, alloca(room_), room_);                                                       \
	} while (0)
