/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/verb_rights.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/base/door.h"
#include "analyzer/base/lender.h"
#include "analyzer/base/save.h"
#include "analyzer/commands/commands.h"
#include "analyzer/commands/replace.h"

void sl_verb_rights(const struct sl_rights *rights)
{
	char why[PATH_MAX + 100];

	if (!sl_replace_may(rights, why, sizeof(why))) {
		sl_door_print(stderr, "stormlog-analyze: %s\n", why);
		exit(SL_EXIT_USAGE);
	}
	sl_lender_start(rights->symbols);
	if (!sl_rights_give_up(rights, "stormlog-analyze"))
		exit(SL_EXIT_UNREADABLE);
	sl_save_watch_signals();
}
