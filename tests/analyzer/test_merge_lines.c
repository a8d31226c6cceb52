/* SPDX-License-Identifier: MIT */
/* Warnings of many processes are joined where only names and amounts differ, and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyzer/report/merge_lines.h"

static void joined(void **state)
{
	struct sl_report report = {0};
	static const char *const expected[] = {
		"before",
		"3 processes, such as rank-00000-7.msgpack.zst: it was asleep for 9 s: peaks are of the time awake",
		"rank-00000-7.msgpack.zst: offset 10: frame is torn",
		"rank-00001-8.msgpack.zst: offset 10: frame is torn",
		"2 processes, such as rank-00001-8.msgpack.zst: watched from outside for 1 min 3 s: what was before is not known",
		"rank-00002-9.msgpack.zst: it was asleep for 3 sheep: peaks are of the time awake",
		"no names of functions in a and 3 more",
		"no names of functions in a and 4 more",
	};

	sl_report_warn(&report, "before");
	sl_report_warn(&report, "rank-00000-7.msgpack.zst: it was asleep for 9 s: peaks are of the time awake");
	sl_report_warn(&report, "rank-00000-7.msgpack.zst: offset 10: frame is torn");
	sl_report_warn(&report, "rank-00001-8.msgpack.zst: offset 10: frame is torn");
	sl_report_warn(&report, "rank-00001-8.msgpack.zst: it was asleep for 489 ms: peaks are of the time awake");
	sl_report_warn(&report, "rank-00001-8.msgpack.zst: watched from outside for 1 min 3 s: what was before is not known");
	sl_report_warn(&report, "rank-00002-9.msgpack.zst: it was asleep for 1.25 h: peaks are of the time awake");
	sl_report_warn(&report, "rank-00002-9.msgpack.zst: it was asleep for 3 sheep: peaks are of the time awake");
	sl_report_warn(&report, "rank-00002-9.msgpack.zst: watched from outside for 40 ms: what was before is not known");
	sl_report_warn(&report, "no names of functions in a and 3 more");
	sl_report_warn(&report, "no names of functions in a and 4 more");
	sl_report_join_warnings(&report, 1);
	assert_int_equal(report.warnings.count, 8);
	for (size_t i = 0; i < 8; i++) {
		assert_string_equal(report.warnings.item[i], expected[i]);
		free(report.warnings.item[i]);
	}
	free(report.warnings.item);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(joined)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
