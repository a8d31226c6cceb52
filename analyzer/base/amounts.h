/* SPDX-License-Identifier: MIT */
/*
 * What the rules mean by their words.  A rule that asks whether something is little, most of it or a few compares with one of
 * these, so that all of them mean the same.  A rule that needs another number defines it, and tests/diagnosis/numbers.md names
 * the recording that needs it.  tests/diagnosis/freeze shows which verdicts a change of these moves.
 */
#ifndef ANALYZER_BASE_AMOUNTS_H
#define ANALYZER_BASE_AMOUNTS_H

#define SL_ALIKE      0.02 /* two figures that differ by less are one figure */
#define SL_TRACE      0.05 /* hardly any of it */
#define SL_LITTLE     0.1
#define SL_QUARTER    0.25
#define SL_THIRD      0.33
#define SL_HALF	      0.5
#define SL_MOST_OF    0.8
#define SL_NEARLY_ALL 0.9
#define SL_LARGER     1.25 /* times as large: more than figures of one kind vary */

#define SL_FEW	   3 /* times that a thing was seen: twice may be chance */
#define SL_SEVERAL 4 /* the same, where chance is likelier */
#define SL_NAMED   3 /* of a list in a sentence: the rest is counted */

#define SL_COMPARED_MAX 2000 /* places that a rule compares with all others: more would take seconds */

#endif
