/* SPDX-License-Identifier: MIT */
/* Which calls merge into the call that made them, and which have stacks; classes.def decides by verb. */
#pragma once

enum sl_class {
	SL_CLASS_CALL, /* merges into an outer call of any class */
	SL_CLASS_MEMORY,
	SL_CLASS_POOL,
	SL_CLASS_CONTEXT,
	SL_CLASS_MODULE,
	SL_CLASS_LIMIT,
	SL_CLASS_GRAPH,
	SL_CLASS_STREAM,
	SL_CLASS_EXTERNAL,
};
