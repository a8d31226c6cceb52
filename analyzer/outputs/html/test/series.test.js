/* SPDX-License-Identifier: MIT */
import assert from "node:assert/strict";
import {test} from "node:test";
import {Series} from "../src/series.js";

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
	const drawn = series.picture(scope, "pytorch", "max", 0, n * 8, 200), k = drawn.layers.findIndex((l) => l.name === "outside PyTorch");
	assert.ok(Math.max(...drawn.bins[k].max) > 500, "columns of many bins say more");
	const told = series.figures(scope, "pytorch", 0, n * 8);
	assert.equal(outside(told.layers).max, 12);
	assert.deepEqual([told.most, told.least], [Math.max(...known), Math.min(...known)]);
	assert.ok(Math.abs(told.mean - known.reduce((a, b) => a + b) / n) < 1e-6);
	assert.equal(known[Math.floor(told.at / 8)], told.most);
	assert.equal(outside(series.figures(scope, "pytorch", 800, 808).layers).max, known[100] - reserved[100]);
	assert.equal(series.figures({process: 7, device: null}, "pytorch", 0, 8).most, null);
});
