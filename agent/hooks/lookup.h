/* SPDX-License-Identifier: MIT */
/*
 * dlsym and dlvsym are exported by lookup_<architecture>.S.  They ask these functions, and then either return the answer or
 * jump to the real function, which then sees the true caller and sets the true error.
 */
#pragma once

struct sl_lookup {
	void *answer;
	void *jump; /* not NULL: no answer here; jump to this real function */
};

/* version NULL: dlsym. */
struct sl_lookup sl_lookup_filter(void *handle, const char *name, const char *version, const void *caller);

/*
 * A library is about to be opened in a way that keeps our wrappers from being found before the real functions: RTLD_DEEPBIND,
 * or a namespace of its own.  Notes that for the trace; returns the real dlopen or dlmopen to jump to.
 */
void *sl_lookup_opening(int flags);
void *sl_lookup_opening_in(long name_space);
