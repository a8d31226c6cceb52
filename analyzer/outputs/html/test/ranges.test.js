/* SPDX-License-Identifier: MIT */
import assert from "node:assert/strict";
import {test} from "node:test";
import {CLASSES, LIVES, Ranges, between, classMost, nearest} from "../src/ranges.js";

/* Blocks as {place, born, ended, bytes} in time, and the rows that the analyzer makes of them with windows of `width`. */
function staysOf(blocks, width, windows) {
	const rows = new Map(), add = (place, born, ended, size_class, bytes) => {
		const key = [place, born, ended, size_class].join(), row = rows.get(key) ?? {place, born, ended, size_class, blocks: 0, bytes: 0};
		row.blocks++;
		row.bytes += bytes;
		rows.set(key, row);
	};
	for (const {place, born, ended, bytes} of blocks) {
		const size_class = Array.from({length: CLASSES}, (_, k) => k).find((k) => bytes <= classMost(k));
		const a = Math.floor(born / width), b = ended === null ? LIVES : Math.floor(ended / width);
		add(place, a, a, size_class, bytes);
		if (a !== b)
			add(place, a, b, size_class, bytes);
	}
	const out = {begin: 0, width, windows};
	for (const key of ["place", "born", "ended", "size_class", "blocks", "bytes"])
		out[key] = Float64Array.from([...rows.values()], (row) => row[key]);
	return out;
}

function random(seed) {
	let x = seed;
	return (n) => (x = (x * 1103515245 + 12345) % 2147483648) % n;
}

test("of any stretch of windows births, what is kept and sizes are those of the blocks themselves", () => {
	const pick = random(7), blocks = Array.from({length: 2000}, () => {
		const born = pick(640), life = pick(4) ? pick(12) : pick(900);
		return {place: pick(3), born, ended: born + life < 640 ? born + life : null, bytes: 1 << (6 + pick(20))};
	});
	const stays = staysOf(blocks, 10, 64);
	for (let k = 0; k < 200; k++) {
		const first = pick(64), end = first + 1 + pick(64 - first), got = between(stays, 3, first, end);
		for (let place = 0; place < 3; place++) {
			const born = blocks.filter((b) => b.place === place && b.born >= first * 10 && b.born < end * 10), kept = born.filter((b) => b.ended === null || b.ended >= end * 10);
			const sum = (list) => list.reduce((a, b) => a + b.bytes, 0);
			assert.deepEqual([got.born[place], got.bornBytes[place], got.kept[place], got.keptBytes[place]], [born.length, sum(born), kept.length, sum(kept)]);
		}
		const all = blocks.filter((b) => b.born >= first * 10 && b.born < end * 10);
		assert.equal(got.bornSizes.reduce((a, b) => a + b, 0), all.length);
		assert.equal(got.bornSizes[2], all.filter((b) => b.bytes > 2048 && b.bytes <= 8192).length);
	}
});

test("a range is shown by the whole windows nearest to it, a narrower one by the window around it", () => {
	const stays = {begin: -5, width: 10, windows: 8};
	assert.deepEqual(nearest(stays, 4, 26), {first: 1, end: 3, from: 5, to: 25});
	assert.deepEqual(nearest(stays, 17, 18), {first: 2, end: 3, from: 15, to: 25});
	assert.deepEqual(nearest(stays, -Infinity, Infinity), {first: 0, end: 8, from: -5, to: 75});
	assert.deepEqual(nearest(stays, 500, 900), {first: 7, end: 8, from: 65, to: 75});
});

const process = (process, stays, more = {}) => ({process, whole: true, stack: [1, 2], name: [1, 2], role: [0, 3], device: [0, 1], made: [4, 2], made_bytes: [400, 20],
	live: [1, 1], live_bytes: [100, 10], peak_bytes: [300, 20], temporary: [2, 0], ended_ns: [30, 5], stays, ...more});

test("places of several processes are one row where stack and purpose are the same; a process without windows says so", () => {
	const stays = () => staysOf([{place: 0, born: 1, ended: 35, bytes: 100}, {place: 0, born: 12, ended: null, bytes: 100}, {place: 1, born: 22, ended: null, bytes: 10}], 10, 4);
	const page = {strings: ["", "a", "b"], roles: ["unknown", "x", "y", "z"], places: [process(0, stays()), process(1, stays()), process(2, null)]};
	const ranges = new Ranges(page), all = {process: null, device: null};
	assert.deepEqual([ranges.canTell(all), ranges.canTell({process: 0, device: null})], [false, true]);
	const whole = ranges.rows({process: 2, device: null}, null).rows;
	assert.deepEqual(whole.map((r) => [r.name, r.born, r.kept, r.peak]), [["a", 4, 1, 300], ["b", 2, 1, 20]]);
	const part = ranges.rows(all, [10, 30]);
	assert.deepEqual(part.rows.map((r) => [r.name, r.born, r.kept, r.keptBytes]), [["a", 2, 2, 200], ["b", 2, 2, 20]]);
	assert.deepEqual(part.stretch, {from: 10, to: 30});
	assert.deepEqual(ranges.rows({process: 0, device: 1}, [10, 30]).rows.map((r) => r.name), ["b"]);
});
