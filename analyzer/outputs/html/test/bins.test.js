/* SPDX-License-Identifier: MIT */
import assert from "node:assert/strict";
import {test} from "node:test";
import {Pyramid, coarser, difference, makeGrid, onGrid, peaksIn, stackUp} from "../src/bins.js";

function line(values, start = 0, width = 10) {
	const of = (f) => Float64Array.from(values, f);
	return {start, width, offset: 0, min: of((v) => v - 1), max: of((v) => v), mean: of((v) => v - 0.5),
		stack: Uint32Array.from(values, (_, i) => i + 1)};
}

function spiky(n, at, height) {
	const l = line(new Array(n).fill(5));
	l.max[at] = height;
	return l;
}

test("the largest maximum of any window is in its picture, at every width", () => {
	for (const n of [1, 2, 3, 64, 1000, 2048])
		for (const at of [0, n >> 1, n - 1])
			for (const most of [1, 2, 7, 300, 5000]) {
				const pyramid = new Pyramid(spiky(n, at, 99));
				for (const [from, to] of [[0, n * 10], [at * 10, at * 10 + 10], [Math.max(0, at * 10 - 25), at * 10 + 31]]) {
					const grid = makeGrid(0, 10, from, to, most), cells = onGrid(pyramid, grid);
					assert.equal(Math.max(...cells.max), 99, `n ${n} at ${at} most ${most} window ${from} ${to}`);
				}
			}
});

test("a spike is in the cell of its time and in no cell that does not touch it", () => {
	const pyramid = new Pyramid(spiky(1024, 700, 99));
	for (const most of [1024, 200, 13]) {
		const grid = makeGrid(0, 10, 0, 10240, most), cells = onGrid(pyramid, grid), hit = [...cells.max].flatMap((v, i) => (v === 99 ? [i] : []));
		assert.deepEqual(hit, [Math.floor(7000 / grid.width)]);
	}
});

test("a level keeps minimum, mean and the stack of the peak", () => {
	const up = coarser(line([3, 9, 4, 1]));
	assert.deepEqual([...up.max], [9, 4]);
	assert.deepEqual([...up.min], [2, 0]);
	assert.deepEqual([...up.mean], [5.5, 2]);
	assert.deepEqual([...up.stack], [2, 3]);
	assert.equal(up.width, 20);
});

test("levels of a line that begins at an odd bin stay aligned to the same grid", () => {
	const l = {...line([7, 8, 9], 30), offset: 3}, up = coarser(l);
	assert.equal(up.start, 20);
	assert.equal(up.offset, 1);
	assert.deepEqual([...up.max], [7, 9]);
});

test("no line is drawn outside of its time", () => {
	const cells = onGrid(new Pyramid(line([5, 5], 100)), makeGrid(0, 10, 0, 200, 20));
	assert.deepEqual([...cells.known].flatMap((k, i) => (k ? [i] : [])), [10, 11]);
});

test("layers stand on each other", () => {
	const a = {mean: [10, 1]}, b = {mean: [10, 2]};
	assert.deepEqual(stackUp([a, b], 2).map((top) => [...top]), [[10, 1], [20, 3]]);
});

test("a difference is never below zero", () => {
	const bins = (v) => ({min: [v], max: [v], mean: [v], known: [1]});
	assert.equal(difference(bins(3), bins(5)).mean[0], 0);
	assert.equal(difference(bins(8), bins(5)).mean[0], 3);
});

test("the peak of a window names its stack", () => {
	const facts = peaksIn(new Pyramid(spiky(100, 42, 99)), 0, 1000);
	assert.equal(facts.peakStack, 43);
	assert.equal(facts.max, 99);
	assert.equal(facts.stacks.length, 100);
});
