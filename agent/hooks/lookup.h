/* SPDX-License-Identifier: MIT */
/*
 * dlsym and dlvsym, exported by lookup_<architecture>.S: they ask here and then either return the answer or
 * jump to the real function, which so sees the true caller and leaves the true error behind.
 */
#ifndef AGENT_HOOKS_LOOKUP_H
#define AGENT_HOOKS_LOOKUP_H

struct sl_lookup {
	void *answer;
	void *jump; /* not NULL: there is no answer here, go on with the real function */
};

/* version NULL: dlsym. */
struct sl_lookup sl_lookup_filter(void *handle, const char *name, const char *version, const void *caller);

/*
 * A library is about to be opened where our wrappers are not found before the real functions: RTLD_DEEPBIND, a namespace of
 * its own.  That is kept for the trace to say; the real dlopen, dlmopen to jump to.
 */
void *sl_lookup_opening(int flags);
void *sl_lookup_opening_in(long name_space);

#endif
