/* SPDX-License-Identifier: MIT */
import assert from "node:assert/strict";
import {readFileSync, readdirSync} from "node:fs";
import {test} from "node:test";
import {answer, hiddenWords} from "../src/answer.js";
import {Cards, byPlace, bySeverity, nothing, together} from "../src/cards.js";
import {highest, path} from "../src/changes.js";
import {alwaysFrom, drawn, saves} from "../src/fit.js";
import {bytes, clock, countEvents, duration, instant, visible} from "../src/format.js";
import {orderOf, scores} from "../src/ranks.js";
import {fragmentation, freePieces} from "../src/segments.js";
import {sorted} from "../src/tables.js";
import {State, format, parse} from "../src/url.js";

const SIZES = [[1.125 * 2 ** 30, "1.12 GiB"], [1.375 * 2 ** 30, "1.38 GiB"], [10.25 * 2 ** 20, "10.2 MiB"], [9.996 * 2 ** 20, "10.0 MiB"],
	[99.96 * 2 ** 20, "100 MiB"], [1023.6 * 2 ** 10, "1.00 MiB"]];

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
	const own = {hidden_peak: 2 ** 30, hidden_at_most: false}, bound = {hidden_peak: 3 * 2 ** 30, hidden_at_most: true};
	assert.deepEqual([hiddenWords([own, bound]), hiddenWords([own]), hiddenWords([{hidden_peak: null}])], ["at most 3.00 GiB", "1.00 GiB", null]);
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

test("ranks with the same leak share a card", () => {
	const groups = together([{process: 0, bytes: 1, blocks: 1, k: "a"}, {process: 1, bytes: 2, blocks: 1, k: "a"}, {process: 1, bytes: 4, blocks: 1, k: "b"}], (l) => l.k);
	assert.deepEqual(groups.map((g) => [g.ranks, g.bytes]), [[[0, 1], 3], [[1], 4]]);
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

test("cards come by severity and bytes", () => {
	const card = (name, tone, bytes) => ({name, tone, bytes});
	const sorted = [card("note", "note", 9), card("small", "warn", 1), card("unknown", "warn", null), card("bad", "bad", 2), card("large", "warn", 5)].sort(bySeverity);
	assert.deepEqual(sorted.map((c) => c.name), ["bad", "large", "small", "unknown", "note"]);
});

test("holders of one place are one row, and an error says where it was asked", () => {
	const rows = byPlace([{name: "tensors", place: "net.py:7 forward", bytes: 32}, {name: "tensors", place: "net.py:10 make", bytes: 40}, {name: "tensors", place: "net.py:7 forward", bytes: 16}, {name: "unused", place: null, bytes: 3}]);
	assert.deepEqual(rows.map((o) => [o.place, o.bytes]), [["net.py:7 forward", 48], ["net.py:10 make", 40], [null, 3]]);
	const cards = Object.assign(Object.create(Cards.prototype), {page: {processes: [{rank: 0, pid: 7}], duration_ns: 1e9}});
	const card = cards.oom({process: 0, device: 0, at: 1, requested: 16, free: 2, total: 9, owners: [], recovered: false, scope: "vram", place: "net.py:7 forward < train.py:3 <module>"});
	assert.deepEqual(card.facts.find(([name]) => name === "at"), ["at", "net.py:7 forward < train.py:3 <module>"]);
});

test("over notes only, the page says 'nothing to report', as the terminal does", () => {
	const page = {source: "trace", processes: [{rank: 0, pid: 7}], duration_ns: 1e9};
	const cards = Object.assign(Object.create(Cards.prototype), {page});
	const left = {process: 0, device: 0, kind: "device", library: "h6", verdict: "live_at_exit", severity: "info", bytes: 500 * 2 ** 20, blocks: 1, first: 0, last: 0, growth: null, confidence: null, stack: 0};
	const label = {process: 0, label: "backward_#", verdict: "growing", credited: false, slope: 4, points: 3, entries: 3, r_squared: 1, duration: 9, stack: 0, held: null, first: 0, last: 1};
	const card = (l) => cards.leak(together([l], () => 1)[0]), growth = (l) => cards.growth(together([l], () => 1)[0]);
	assert.match(nothing(page, [card(left), growth(label)]), /^Nothing to report/);
	assert.match(nothing(page, []), /^Nothing to report/);
	assert.equal(nothing(page, [card(left), growth({...label, credited: true})]), null);
	assert.equal(nothing(page, [card({...left, verdict: "growing", severity: "critical"})]), null);
	assert.match(card(left).where, /^rank 0, device 0, h6/);
	const two = cards.leak(together([left, {...left, device: 1, bytes: 100 * 2 ** 20}], () => 1)[0]);
	assert.match(two.where, /500 MiB on device 0, 100 MiB on device 1/);
	const whole = {...page, ooms: [], findings: [], leaks: [left], labels: [label], leaking: {places: 0, bytes: 0, text: null}, processes: [{rank: null, pid: 7, peak: 1, peak_at: null, status: "completed"}]};
	assert.equal(answer(whole).at(-1), "No leak found; 500 MiB never freed.");
	assert.match(answer({...whole, labels: [{...label, credited: true}]}).at(-1), /memory grows by 4 B per backward_#/);
	assert.ok(answer(whole).some((line) => line.startsWith("Peak 1 B")));
	assert.ok(!answer({...whole, processes: [{...whole.processes[0], peak: 0, devices: []}]}).some((line) => line.startsWith("Peak"))); /* it used none */
});

test("the headline names who is unlike the others, and where memory leaks", () => {
	const process = (rank, peak) => ({rank, peak, peak_at: null, end: 0, ooms: 0, status: "completed"});
	const finding = (id, severity, text, bytes = null) => ({id, severity, text, bytes});
	const page = {processes: [process(0, 100), process(1, 400)], ooms: [], leaks: [], labels: [], source: "trace", duration_ns: 1e9, leaking: {places: 2, bytes: 30, text: "a.py:4 large leaks"},
		findings: [finding("ranks.outlier", "warning", "rank 1 is an outlier: 300 B more at solver.c:9 checkpoint")]};
	const [first, second, third, fourth] = answer(page);
	assert.equal(first, "Rank 1 is an outlier: 300 B more at solver.c:9 checkpoint.");
	assert.equal(second, "2 places leak; the largest: a.py:4 large leaks.");
	assert.match(third, /^No out-of-memory error/);
	assert.match(fourth, /^Peak 400 B on rank 1/);
	assert.equal(answer({...page, findings: [], leaking: {places: 1, bytes: 20, text: "a.py:4 large leaks"}})[0], "a.py:4 large leaks.");
	const none = answer({...page, findings: [], leaking: {places: 0, bytes: 0, text: null}, leaks: [{verdict: "live_at_exit", bytes: 2048}]});
	assert.equal(none[none.length - 1], "No leak found; 2.00 KiB never freed.");
	const oom = {process: 1, at: 5, requested: 7, free: 1, recovered: false, owners: [], cause: "the device was full; it grew: leak at a.py:4"};
	const failed = answer({...page, ooms: [oom]});
	assert.match(failed[0], /^Out of memory on rank 1 .*it grew: leak at a.py:4\.$/);
	assert.match(failed[1], /^Rank 1 is an outlier/);
	const changes = [{process: 1, device: 0, failed: true, tried: [{helps: null, text: "a", words: "b"}, {helps: "would have passed this step", text: "half_batch in a.py:4", words: "-4 B, scaled"}]}];
	assert.equal(answer({...page, ooms: [{...oom, device: 0}], changes})[1], "Would have passed this step: half_batch in a.py:4, -4 B, scaled.");
});

test("a page of a snapshot claims nothing of leaks, which a window cannot tell", () => {
	const page = {window: "a PyTorch snapshot", processes: [{rank: null, pid: 7, peak: 4, peak_at: null, status: "unknown", leaks: null}], ooms: [], leaks: [], labels: [], findings: [], source: "trace", duration_ns: 1e9, leaking: {places: 0, bytes: 0, text: null}};
	assert.deepEqual(answer(page), ["No out-of-memory error.", "Peak 4 B."]);
	assert.equal(answer({...page, leaking: {places: 1, bytes: 20, text: "a.py:4 large leaks"}})[0], "a.py:4 large leaks.");
	assert.deepEqual(answer({...page, need: ["fits H200: 4 B", "3 optimizer steps ran"]}).slice(0, 2), ["Fits H200: 4 B.", "3 optimizer steps ran."]);
});

test("tables sort by any column, what is not known last", () => {
	const rows = [["b", 2], ["a10", null], ["a9", 30], [null, 1]];
	assert.deepEqual(sorted(rows, 1, true).map((row) => row[1]), [30, 2, 1, null]);
	assert.deepEqual(sorted(rows, 1, false).map((row) => row[1]), [1, 2, 30, null]);
	assert.deepEqual(sorted(rows, 0, false).map((row) => row[0]), ["a9", "a10", "b", null]);
	assert.deepEqual(rows[0], ["b", 2], "the rows themselves stay");
});
