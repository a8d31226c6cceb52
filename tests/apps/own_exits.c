/* SPDX-License-Identifier: MIT */
/* A library that has functions of its own under names that the C library has too, and for which the agent has wrappers. */
#define OWN(name)                                                                                                                  \
	long name(long a, long b, long c, long d, long e, long f);                                                                 \
	long name(long a, long b, long c, long d, long e, long f)                                                                  \
	{                                                                                                                          \
		return a + b + c + d + e + f;                                                                                      \
	}

OWN(_exit)
OWN(quick_exit)
OWN(unshare)
OWN(setns)
OWN(setgroups)
OWN(initgroups)
