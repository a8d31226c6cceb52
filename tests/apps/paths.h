/* SPDX-License-Identifier: MIT */
/* Two functions that call each other by the bits of `path`, and at last `call`: each path is a stack of its own. */
#pragma once

static __attribute__((noinline)) int call_by_odd(unsigned path, int depth, void (*call)(void));

static __attribute__((noinline)) int call_by_path(unsigned path, int depth, void (*call)(void))
{
	if (depth)
		return (path & 1 ? call_by_odd : call_by_path)(path >> 1, depth - 1, call) + 1; /* + 1: no tail call */
	call();
	return 0;
}

static __attribute__((noinline)) int call_by_odd(unsigned path, int depth, void (*call)(void))
{
	return (depth ? (path & 1 ? call_by_odd : call_by_path)(path >> 1, depth - 1, call) : call_by_path(0, 0, call)) + 1;
}
