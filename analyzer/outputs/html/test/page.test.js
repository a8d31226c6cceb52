/* SPDX-License-Identifier: MIT */
import assert from "node:assert/strict";
import {readFileSync, readdirSync} from "node:fs";
import {test} from "node:test";
import {hiddenIs, hiddenWords, ofSamples} from "../src/answer.js";
import {momentOf} from "../src/cards.js";
import {linesOf, markedOf, placeOf, textOf} from "../src/verdicts.js";
import {highest, path} from "../src/changes.js";
import {alwaysFrom, drawn, saves} from "../src/fit.js";
import {bytes, clock, countEvents, duration, instant, visible} from "../src/format.js";
import {orderOf, scores} from "../src/ranks.js";
import {fragmentation, freePieces} from "../src/segments.js";
import {byLine} from "../src/places.js";
import {sorted} from "../src/tables.js";
import {State, format, parse} from "../src/url.js";

const SIZES = [[1.125 * 2 ** 30, "1.12 GiB"], [1.375 * 2 ** 30, "1.38 GiB"], [10.25 * 2 ** 20, "10.2 MiB"], [9.996 * 2 ** 20, "10.0 MiB"],
	[99.96 * 2 ** 20, "100 MiB"], [1023.6 * 2 ** 10, "1.00 MiB"], [1000 * 2 ** 10, "0.98 MiB"]];

test("unknown is a dash and never 0", () => {
	for (const unknown of [null, undefined, NaN])
		assert.deepEqual([bytes(unknown), duration(unknown)], ["–", "–"]);
	assert.equal(bytes(0), "0 B");
});

test("where events have no times, they are counted", () => {
	countEvents(true);
	assert.deepEqual([duration(7123000), instant(7123000, 1000)], ["7\u202f123 events", "event 7\u202f123"]);
	countEvents(false);
	assert.equal(duration(7123000), "7.12 ms");
});

test("a figure of the whole device bounds what is hidden", () => {
	const own = {hidden_peak_bytes: 2 ** 30, hidden_figure: "process"}, bound = {hidden_peak_bytes: 3 * 2 ** 30, hidden_figure: "device"};
	assert.deepEqual([hiddenWords([own, bound]), hiddenWords([own]), hiddenWords([{hidden_peak_bytes: null}])], ["at most 3.00 GiB", "1.00 GiB", null]);
});

test("what hides memory is named, but for a fiftieth of it", () => {
	const parts = (...rows) => [{hidden_peak_bytes: 1000, hidden: rows.map(([what, bytes]) => ({what, bytes}))}];
	assert.equal(hiddenIs(parts(["code", 20], ["context", 500], ["rounding", 10], ["rounding", 9])), "CUDA context, code: no call asks for it");
	assert.match(hiddenIs(parts()), /^nothing: /);
});

test("a curve ends where the program failed", () => {
	const curve = [1, 4, 2, NaN];
	assert.equal(highest(curve, [NaN, 3]), 4);
	assert.deepEqual(path(curve, 4), [[0.125, 0.75], [0.375, 0], [0.625, 0.5]]);
	assert.deepEqual(path([NaN], 1), []);
});

test("bytes and times read as people say them", () => {
	assert.equal(bytes(62.4 * 2 ** 30), "62.4 GiB");
	assert.equal(bytes(1023), "1023 B");
	for (const [value, text] of SIZES) // tests/analyzer/test_golden_units.c holds the terminal to the same
		assert.equal(bytes(value), text);
	assert.equal(duration(2458e9), "40 min 58 s");
	assert.equal(duration(850e6), "850 ms");
	assert.equal(instant(3723.5e9, 1e8), "1:02:03.5");
	assert.equal(clock(1800000000000000000n, 1500000000, 1e6), "08:00:01.500");
});

test("no control character and no mark that reorders text reaches the page unseen", () => {
	assert.equal(visible("a\u0007b\u202ec\u001b"), "a<0007>b<202E>c<001B>");
	assert.equal(visible("n".repeat(10000)).length, 300);
});

test("a view goes through the address and back", () => {
	const state = {...parse(""), rank: "3", q: "a&b=#</script>", from: "12", theme: "dark"};
	assert.deepEqual(parse(format(state)), state);
	assert.equal(format(parse("")), "");
	assert.equal(parse("#at=1.2345").at, "1234500000"); // seconds, as --at
	assert.equal(format({...parse(""), at: "1234500000"}), "#at=1.2345");
	assert.equal(Object.hasOwn(parse("#__proto__=1&constructor=2"), "__proto__"), false);
});

test("a view hears only of its own keys, and only when they change", () => {
	const told = [], state = new State("", () => {});
	state.on(["q"], (keys) => told.push(keys));
	state.set({rank: 1});
	state.set({q: "x"});
	state.set({q: "x"});
	assert.deepEqual(told, [["q"]]);
});

test("places of one line and role are one row, with their sums", () => {
	const row = (name, role, peak) => ({name, role, born: 1, bornBytes: peak, kept: 0, keptBytes: 0, peak, temporary: 0, ended: 1, ended_ns: 5});
	assert.deepEqual(byLine([row("a.py:1", 1, 4), row("a.py:1", 2, 1), row("a.py:1", 1, 2)]).map(({role, peak, born, ended_ns}) => [role, peak, born, ended_ns]), [[1, 6, 2, 10], [2, 1, 1, 5]]);
});

test("ranks unlike the others come first, a failed one before all", () => {
	const p = (rank, peak, ooms) => ({rank, peak, end: 1, ooms, status: "completed"});
	const page = {processes: [p(0, 100), p(1, 101), p(2, 400), p(3, 100, 1), p(4, 99)]};
	assert.deepEqual(orderOf(page, "outliers").slice(0, 2), [3, 2]);
	assert.deepEqual(orderOf(page, "rank"), [0, 1, 2, 3, 4]);
	assert.equal(orderOf(page, "peak")[0], 2);
	assert.deepEqual(scores([]), []);
});

test("free pieces and blocks fill their segments", () => {
	const map = {segment_bytes: [100, 50], block_segment: [0, 0, 1], block_offset: [10, 60, 0], block_bytes: [20, 40, 50]};
	const free = freePieces(map);
	assert.deepEqual(free, [{segment: 0, offset: 0, bytes: 10}, {segment: 0, offset: 30, bytes: 30}]);
	assert.deepEqual(fragmentation(free), {total: 40, largest: 30, part: 0.25});
	assert.equal(fragmentation([]).part, 0);
});

test("a capacity that was not searched to its end reads 'at most'", () => {
	assert.equal(alwaysFrom({always_from: 2 ** 30, at_most: false}), "1.00 GiB");
	assert.equal(alwaysFrom({always_from: 2 ** 30, at_most: true}), "at most 1.00 GiB");
	assert.equal(alwaysFrom({always_from: null, at_most: false}), null);
});

test("the best setting is shown only if it is better than the recorded one", () => {
	const choices = [{recorded: true, settings: "", always_from: 3 * 2 ** 30}, {recorded: false, settings: "a:1", always_from: 2 ** 31}];
	assert.equal(saves({best: 1, choices}), "PYTORCH_CUDA_ALLOC_CONF=a:1 needs 2.00 GiB, 1.00 GiB less.");
	assert.equal(saves({best: 0, choices}), null);
	assert.equal(saves({best: 0, choices: []}), null);
});

test("a capacity far above the run has no line, unless there is no other", () => {
	assert.deepEqual(drawn([1, 10, 20, 80], 10), [1, 10, 20]);
	assert.deepEqual(drawn([80, 90], 10), [80]);
});

test("no module makes elements from markup", () => {
	const folder = new URL("../src/", import.meta.url);
	for (const name of readdirSync(folder))
		assert.doesNotMatch(readFileSync(new URL(name, folder), "utf8"), /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\.html\(|DOMParser|eval\(|new Function/, name);
});

test("tables sort by any column, what is not known last", () => {
	const rows = [["b", 2], ["a10", null], ["a9", 30], [null, 1]];
	assert.deepEqual(sorted(rows, 1, true).map((row) => row[1]), [30, 2, 1, null]);
	assert.deepEqual(sorted(rows, 1, false).map((row) => row[1]), [1, 2, 30, null]);
	assert.deepEqual(sorted(rows, 0, false).map((row) => row[0]), ["a9", "a10", "b", null]);
	assert.deepEqual(rows[0], ["b", 2], "the rows themselves stay");
});

const VERDICT = {word: "LEAK", headline: "a.py:4 keeps 2 MiB of every pass", tone: "bad", process: 1, device: 0, why: ["all are held.", "It is in rank 1."], fix: ["detach it", "\n  or clear it"], open: ["who reads it", "why"],
	lines: [{file: "a.py", line: 9, function: "main", source: "f()", mark: null}, {file: "a.py", line: 4, function: "f", source: "x = g()", mark: "made here"}, {file: null, line: null, function: "app+0x1", source: null, mark: null}],
	table: {total: "2.00", unit: "MiB", moment: "held, at the peak", rows: [{amount: "2.00", name: "this leak", text: "a.py:4"}]}, next: [{command: "stormlog-analyze tree", shows: null}]};

test("a verdict as text has the terminal's parts in their order", () => {
	assert.equal(textOf(VERDICT), ["LEAK   a.py:4 keeps 2 MiB of every pass", "  a.py:9  f()\n  a.py:4  x = g()  <- made here\n  app+0x1  ",
		"  why    all are held. It is in rank 1.\n  fix    detach it\n           or clear it\n  open   who reads it\n         why", "  2.00  MiB held, at the peak\n  2.00  this leak  a.py:4",
		"next   stormlog-analyze tree"].join("\n\n"));
});

test("the line of a verdict is the last one with a mark, else the innermost", () => {
	assert.equal(placeOf(markedOf(VERDICT)), "a.py:4");
	assert.equal(placeOf(markedOf({lines: VERDICT.lines.map((line) => ({...line, mark: null}))})), "app+0x1");
	assert.equal(markedOf({lines: []}), null);
});

test("sentences of a label go on in their line, but not notes, and none that begins a line", () => {
	assert.deepEqual(linesOf("why", ["a.", "b."]), ["a. b."]);
	assert.deepEqual(linesOf("note", ["a", "b"]), ["a", "b"]);
	assert.deepEqual(linesOf("fix", ["a", "\nb", "c"]), ["a", "b c"]);
});

test("an error is shown at its moment, a leak at the peak of its device", () => {
	const page = {moments: [{kind: "peak", process: 1, device: 1, at: 5}, {kind: "peak", process: 1, device: 0, at: 6}, {kind: "oom", process: 1, device: 0, at: 7}]};
	assert.equal(momentOf(page, VERDICT).at, 6);
	assert.equal(momentOf(page, {...VERDICT, word: "OUT OF MEMORY"}).at, 7);
	assert.equal(momentOf(page, {...VERDICT, process: 0}), null);
});

test("a page of samples says that they do not tell who held memory", () => {
	const page = {processes: [{rank: 0, peak: 4}, {rank: 1, peak: 9}], findings: [], duration_ns: 1e9};
	assert.deepEqual(ofSamples(page), ["Peak 9 B on rank 1.", "These are samples: they say how much was held, not by whom."]);
	assert.match(ofSamples({...page, findings: [{id: "oom.sampled", from: 5e8, process: 0}]})[0], /^Out of memory on rank 0 at 0\.500 s/);
});
