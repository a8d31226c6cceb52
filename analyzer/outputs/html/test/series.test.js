/* SPDX-License-Identifier: MIT */
import assert from "node:assert/strict";
import {test} from "node:test";
import {isCoarse} from "../src/closer.js";
import {ask} from "../src/data.js";
import {Series} from "../src/series.js";
import {dataOf} from "../src/url.js";

/* A line of `what` whose bins are as flat as the data knows: the bounds of what is left beside it are exact in them. */
function line(what, values) {
	const of = () => Float64Array.from(values);
	return {process: 0, device: 0, what, name: what, peak: Math.max(...values), start: 0, width: 8, offset: 0, min: of(), max: of(), mean: of(),
		stack: new Uint32Array(values.length), at: new Uint8Array(values.length)};
}

test("figures are of the data's own bins, in which a layer's bound is as narrow as the trace tells", () => {
	const n = 2000, reserved = Array.from({length: n}, (_, i) => (i % 2 ? 900 : 400)), known = reserved.map((v, i) => v + 10 + i % 3);
	const series = new Series({source: "trace", processes: [{rank: 0, pid: 1}], duration_ns: n * 8,
		lines: [line("known", known), line("reserved", reserved), line("allocated", reserved.map((v) => v - 100))]});
	const scope = {process: 0, device: 0}, outside = (layers) => layers.find((l) => l.name === "outside PyTorch");
	const drawn = series.picture(scope, "pytorch", 0, n * 8, 200), k = drawn.layers.findIndex((l) => l.name === "outside PyTorch");
	assert.ok(Math.max(...drawn.bins[k].max) > 500, "columns of many bins say more");
	const told = series.figures(scope, "pytorch", 0, n * 8);
	assert.equal(outside(told.layers).max, 12);
	assert.equal(told.most, Math.max(...known));
	assert.ok(Math.abs(told.mean - known.reduce((a, b) => a + b) / n) < 1e-6);
	assert.equal(known[Math.floor(told.at / 8)], told.most);
	assert.equal(outside(series.figures(scope, "pytorch", 800, 808).layers).max, known[100] - reserved[100]);
	assert.equal(series.figures({process: 7, device: null}, "pytorch", 0, 8).most, null);
});

/* Stacks 1 (a role) and 2 (none) of one process, and 3, a note. */
test("by role: a bin has the last moment before its end, the peak's own where it is in it, and no more than the total", () => {
	const moment = (kind, at, ...bytes) => ({process: 0, device: 0, kind, at, stack: [1, 2, 3], bytes});
	const page = {source: "trace", processes: [{rank: 0, pid: 1}], duration_ns: 80, lines: [{...line("known", [60, 60, 100, 60, 30]), start: 16}],
		devices: [{device: 0, processes: [0], room_bytes: 120}, {device: 1, processes: [0], room_bytes: 500}], roles: ["unknown", "activations"],
		strings: ["", "a.py:1 f < a.py:9 g", "b.py:2 h", "unused"], frames: {function: [3, 1], file: [0, 1], module: [0, 0], python: [0, 1]}, nodes: {parent: [0, 0, 4, 0, 0], frame: [0, 1, 0, 0, 1]}, /* 2: an operator without a file, in b.py */
		places: [{process: 0, stack: [1, 2], name: [1, 2], role: [1, 0]}],
		moments: [moment("time", 17, 10, 20, 30), moment("peak", 33, 70, 20, 10), moment("time", 38, 20, 20, 20), moment("end", 56, 20, 20, 20), moment("churn", 0, 9, 9, 9)]};
	const series = new Series(page), scope = {process: 0, device: 0}, drawn = (by) => {
		const {layers, bins} = series.picture(scope, by, 16, 56, 5);
		return Object.fromEntries(layers.map((layer, k) => [layer.name, [...bins[k].mean]]));
	};
	assert.deepEqual(drawn("role"), {activations: [10, 10, 70, 20, 10], "b.py:2 h": [20, 20, 20, 20, 10], unused: [30, 30, 10, 20, 10]});
	assert.deepEqual(Object.keys(drawn("line")), ["a.py:1 f", "b.py:2 h", "unused"].sort((a, b) => (a === "a.py:1 f" ? -1 : b === "a.py:1 f" ? 1 : 0)));
	assert.equal(series.choose(scope, ""), "role");
	assert.deepEqual([series.span(scope), series.card(scope), series.card({process: 0, device: null})], [[16, 56], 120, null]);
	const told = series.figures(scope, "role", 16, 56);
	assert.deepEqual(told.layers.map((l) => [l.name, l.max]), [["activations", 70], ["b.py:2 h", 20], ["unused", 10]]);
	assert.equal(new Series({...page, moments: []}).choose(scope, ""), "kind");
});

test("lines of a part are drawn only where they cover the view", () => {
	const series = new Series({source: "trace", processes: [{rank: 0, pid: 1}], duration_ns: 800, lines: [line("known", Array(100).fill(5))]});
	const part = {...line("known", [5, 9, 5, 5]), start: 400, width: 2}, scope = {process: 0, device: null};
	assert.equal(series.finest(400, 408), 8);
	series.take([part]);
	assert.deepEqual([series.finest(400, 408), series.finest(402, 404), series.finest(399, 408), series.finest(400, 409)], [2, 2, 8, 8]);
	assert.equal(series.figures(scope, "kind", 402, 404).most, 9);
	assert.equal(series.figures(scope, "kind", 402, 404).at, 403);
	assert.equal(series.figures(scope, "kind", 0, 800).most, 5);
});

test("a view is asked for only where its bins are too wide and finer ones can be had", () => {
	assert.equal(isCoarse(1024, 0, 1024 * 255), true);
	assert.equal(isCoarse(1024, 0, 1024 * 256), false);
	assert.equal(isCoarse(2, 0, 10), false);
	const at = (pathname, search, ...view) => dataOf({origin: "http://here", href: `http://me:secret@here${pathname}`, pathname, search}, ...view);
	assert.equal(at("/runs/7/report", "", 1.5, 9.5), "http://here/api/v1/runs/7/page?from=1&to=10");
	assert.equal(at("/runs/7/report", "?x", -3, 9), "http://here/api/v1/runs/7/page?from=0&to=9");
	assert.equal(at("/runs/7/report", ""), "http://here/api/v1/runs/7/page");
	assert.equal(at("/compare", "?before=1&after=2"), "http://here/api/v1/compare?before=1&after=2");
});

test("a part that a server still computes is asked for again, and a refusal is shown in its words", async () => {
	const answers = [{status: 202}, {status: 202}, {status: 404, json: async () => ({error: "there is no such run"})}];
	await assert.rejects(ask("/x", {pause: 1, get: async () => answers.shift()}), /there is no such run/);
	assert.equal(answers.length, 0);
});
