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
#include "common/base.h"

void sl_verb_rights(const struct sl_rights *rights)
{
	char why[PATH_MAX + 100];

	for (size_t i = 0; i < SL_COUNT(rights->writes); i++)
		if (rights->writes[i])
			sl_save_judge(rights->writes[i]);
	if (!sl_replace_may(rights, why, sizeof(why))) {
		sl_door_print(stderr, "stormlog-analyze: %s\n", why);
		exit(SL_EXIT_USAGE);
	}
	for (size_t i = 0; i < SL_COUNT(rights->writes); i++)
		if (rights->writes[i])
			sl_save_clear_left(rights->writes[i]);
	sl_lender_start(rights->symbols);
	if (!sl_rights_give_up(rights, "stormlog-analyze"))
		exit(SL_EXIT_UNREADABLE);
	sl_save_watch_signals();
}
