/* SPDX-License-Identifier: MIT */
/*
 * Programs that this one starts.  Trainers set LD_PRELOAD for their workers (torch_memory_saver and the frameworks of reinforcement
 * learning around it) and so replace what the launcher set there: the agent goes in front of it again.  Where LD_PRELOAD is taken away,
 * a child is left without the agent, and a note in the trace says so, once.
 *
 * Safe in a vfork child: no lock, no allocation; the new environment lies on the caller's stack.
 */
#ifndef AGENT_HOOKS_CHILDREN_H
#define AGENT_HOOKS_CHILDREN_H

#include <alloca.h>
#include <stddef.h>

/* Bytes for sl_children_fill; 0: the environment is good as it is. */
size_t sl_children_room(char *const *envp);
char *const *sl_children_fill(char *const *envp, void *room, size_t bytes);

/* In the function that hands envp on. */
#define SL_CHILDREN_KEEP(envp)                                                                                                     \
	do {                                                                                                                       \
		size_t room_ = sl_children_room(envp);                                                                             \
                                                                                                                                   \
		if (room_)                                                                                                         \
			envp = sl_children_fill(envp, alloca(room_), room_);                                                       \
	} while (0)

#endif
