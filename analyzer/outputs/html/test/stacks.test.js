/* SPDX-License-Identifier: MIT */
import assert from "node:assert/strict";
import {test} from "node:test";
import {Stacks, buildTree, mostFrequent} from "../src/stacks.js";
import {tally} from "../src/search.js";

/* main > step > forward | main > step > backward (native) | main > save */
export const page = {
	strings: ["", "main", "step", "forward", "backward", "save", "/x/train.py", "libext.so"],
	frames: {function: [1, 2, 3, 4, 5], file: [6, 6, 6, 0, 6], module: [0, 0, 0, 7, 0], line: [1, 20, 30, 0, 40], python: [1, 1, 1, 0, 1], folded: [0, 0, 0, 0, 0], own: [1, 1, 0, 0, 1]},
	nodes: {parent: [0, 0, 1, 2, 2, 1], frame: [0, 0, 1, 2, 3, 4]},
	processes: [{libraries: [{library: "libnccl.so.2"}]}],
};
const stacks = new Stacks(page);

test("a stack is its path from the root, outermost first", () => {
	assert.deepEqual(stacks.path(3), [0, 1, 2]);
	assert.deepEqual(stacks.path(0), []);
});

test("frames say where they are, Python by file and native by module", () => {
	assert.equal(stacks.name(2), "forward  train.py:30");
	assert.equal(stacks.name(3), "backward  libext.so");
});

test("frames that pass on are folded by default, unless no other frame is left", () => {
	const through = new Stacks({...page, frames: {...page.frames, folded: [0, 1, 0, 1, 0]}});
	assert.deepEqual(through.path(3), [0, 2]);
	assert.deepEqual(buildTree(through, [[3, 10], [4, 5]]).children[0].children.map((c) => c.frame), [2]);
	through.all = true;
	assert.deepEqual(through.path(3), [0, 1, 2]);
	const all = new Stacks({...page, frames: {...page.frames, folded: [1, 1, 1, 1, 1]}});
	assert.deepEqual(all.path(4), [0, 1, 3]);
});

test("the program's own frames come first, else the innermost ones", () => {
	const names = (node, most) => stacks.foremost(stacks.path(node), most).map((i) => stacks.frame(stacks.path(node)[i]).function);
	assert.deepEqual(names(4, 5), ["step", "main"]);
	assert.deepEqual(names(4, 1), ["step"]);
	const none = new Stacks({...page, frames: {...page.frames, own: [0, 0, 0, 0, 0]}});
	assert.deepEqual(none.foremost(none.path(4), 2).map((i) => none.frame(none.path(4)[i]).function), ["backward", "step"]);
});

test("the common part of stacks is their longest common beginning", () => {
	assert.deepEqual(stacks.common([3, 4]), [0, 1]);
	assert.deepEqual(stacks.common([3, 4, 5]), [0]);
	assert.deepEqual(stacks.common([3]), [0, 1, 2]);
	assert.deepEqual(stacks.common([3, 0]), []);
	assert.deepEqual(stacks.common([]), []);
});

test("the most frequent stack has its share of all, unknown ones included", () => {
	assert.deepEqual(mostFrequent([3, 3, 4, 0]), {node: 3, share: 0.5, different: 3});
	assert.equal(mostFrequent([]).node, 0);
});

test("a tree adds up: children to their parents, all to the root", () => {
	const tree = buildTree(stacks, [[3, 10], [4, 5], [5, 1], [3, 2]]);
	assert.equal(tree.value, 18);
	const check = (n) => {
		assert.equal(n.value, n.self + n.children.reduce((a, c) => a + c.value, 0));
		n.children.forEach(check);
	};
	check(tree);
	assert.deepEqual(tree.children[0].children.map((c) => c.value), [17, 1]);
});

test("inverted, the innermost frames are at the root and the total stays", () => {
	const tree = buildTree(stacks, [[3, 10], [4, 5]], true);
	assert.equal(tree.value, 15);
	assert.deepEqual(tree.children.map((c) => c.frame), [2, 3]);
});

test("memory without a stack stays in the tree", () => {
	assert.equal(buildTree(stacks, [[0, 7]]).children[0].value, 7);
});

test("search finds functions, files and libraries, and stacks around them", () => {
	assert.deepEqual([...stacks.matching("STEP")], [0, 0, 1, 1, 1, 0]);
	assert.deepEqual([...stacks.matching("libext")], [0, 0, 0, 0, 1, 0]);
	assert.equal(stacks.matching("  "), null);
	assert.deepEqual(tally(page, "lib"), {functions: 0, files: 0, libraries: 2});
});

test("stacks of a part, numbered on their own, keep their frames beside ours, and another part's take their place", () => {
	const whole = new Stacks(page), part = {
		strings: ["", "resize", "/x/late.py", "main"],
		frames: {function: [3, 1], file: [2, 2], module: [0, 0], line: [1, 77], python: [1, 1], folded: [0, 0], own: [1, 1]},
		nodes: {parent: [0, 0, 1], frame: [0, 0, 1]},
	};
	const names = (node) => whole.path(node).map((f) => whole.name(f));
	for (const line of [77, 78]) {
		part.frames.line[1] = line;
		const ours = whole.adopt(part);
		assert.deepEqual(names(ours(2)), ["main  late.py:1", `resize  late.py:${line}`]);
		assert.equal(ours(0), 0);
		assert.deepEqual(names(3), ["main  train.py:1", "step  train.py:20", "forward  train.py:30"]);
		assert.equal(whole.matching("resize")[ours(2)], 1);
		assert.equal(whole.nodes.parent.length, page.nodes.parent.length + 3);
	}
});
