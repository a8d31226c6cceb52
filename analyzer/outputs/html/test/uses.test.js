/* SPDX-License-Identifier: MIT */
import assert from "node:assert/strict";
import test from "node:test";
import {Uses} from "../src/uses.js";

test("each part of the chart has a colour of its own, and only what no one uses is grey", () => {
	const words = ["CUDA graphs in 80 pools", "CUDA graphs", "kept by PyTorch, unused", "made before the window"];
	const held = (kind, at, names) => ({kind, at, process: 0, device: 0, stack: names.map((name) => words.indexOf(name) + 1), bytes: names.map(() => 8)});
	const frames = words.map((_, i) => i);
	const page = {strings: words, frames: {module: [0, 0, 0, 0], file: [0, 0, 0, 0], python: [0, 0, 0, 0], function: frames}, nodes: {parent: [0, 0, 0, 0, 0], frame: [0, ...frames]},
		moments: [held("peak", 1, words.filter((word) => word !== "CUDA graphs")), held("time", 2, words.slice(1, 3))]};
	const layers = new Uses(page).layers({process: null, device: null}, "role", 8);
	assert.deepEqual(new Map(layers.map(({name, colour}) => [name, colour])), new Map([["CUDA graphs", 1], ["kept by PyTorch, unused", 0], ["made before the window", 2]]));
});
