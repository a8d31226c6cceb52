/* SPDX-License-Identifier: MIT */
/*
 * Stacks are nodes of one tree of frames: a stack is the path from the root (node 0) to its node, outermost first;
 * a parent always has a smaller number than its children.
 */
import {basename, visible} from "./format.js";

export class Stacks {
	constructor(page) {
		this.page = page;
		this.strings = page.strings;
		this.frames = page.frames;
		this.nodes = page.nodes;
		this.names = new Map();
		this.all = false; /* frames of interpreters and bridges too */
	}

	/*
	 * Takes in the stacks of a part of the run, which has numbers of its own, in place of an earlier part's.  Returns a function
	 * from the part's number of a stack to ours.
	 */
	adopt(part) {
		const {strings, frames, nodes} = this.page, texts = strings.length, known = frames.line.length, first = nodes.parent.length;
		const join = (a, b, change = (v) => v) => Uint32Array.from([...a, ...Array.from(b, change)]);
		const text = (v) => (v ? v + texts : 0), stack = (v) => (v ? v + first : 0);
		this.strings = [...strings, ...part.strings];
		this.frames = Object.fromEntries(Object.keys(frames).map((key) =>
			[key, join(frames[key], part.frames[key], ["function", "file", "module"].includes(key) ? text : undefined)]));
		this.nodes = {parent: join(nodes.parent, part.nodes.parent, stack), frame: join(nodes.frame, part.nodes.frame, (v) => v + known)};
		for (const f of this.names.keys())
			if (f >= known)
				this.names.delete(f);
		return stack;
	}

	/* Frames of a stack, outermost first; [] when unknown.  What only passes a request on is folded, unless it is all there is. */
	path(node) {
		const path = [];
		for (let n = node; n > 0; n = this.nodes.parent[n])
			path.push(this.nodes.frame[n]);
		path.reverse();
		const told = this.all ? path : path.filter((f) => !this.frames.folded[f]);
		return told.length ? told : path;
	}

	frame(f) {
		const {frames, strings} = this;
		return {
			python: frames.python[f] === 1,
			function: strings[frames.function[f]],
			file: strings[frames.file[f]],
			module: strings[frames.module[f]],
			line: frames.line[f],
		};
	}

	/* "forward  model.py:210", "cache_create  ext.so" */
	name(f) {
		let name = this.names.get(f);
		if (name === undefined) {
			const {python, function: fn, file, module, line} = this.frame(f);
			const place = python || (file && line) ? `${basename(file)}${line ? ":" + line : ""}` : basename(module);
			name = visible([fn || "?", place].filter(Boolean).join("  "));
			this.names.set(f, name);
		}
		return name;
	}

	/* where, in full: for details */
	place(f) {
		const {file, module, line} = this.frame(f);
		return visible([file ? file + (line ? ":" + line : "") : "", module].filter(Boolean).join("  "), 2000);
	}

	isPython(f) {
		return this.frames.python[f] === 1;
	}

	/* Not code but words about memory: it has no place. */
	isNote(f) {
		return !this.isPython(f) && !this.frames.module[f] && !this.frames.file[f];
	}

	/* The frames of a path that a reader looks at first, innermost first: the program's own, else the innermost. */
	foremost(path, most) {
		const all = path.map((_, i) => i).reverse(), own = all.filter((i) => this.frames.own[path[i]]);
		return (own.length ? own : all).slice(0, most);
	}

	/* Longest common beginning of several stacks, outermost first. */
	common(nodes) {
		let path = null;
		for (const node of nodes) {
			const other = this.path(node);
			if (path === null) {
				path = other;
				continue;
			}
			let same = 0;
			while (same < path.length && same < other.length && path[same] === other[same])
				same++;
			path.length = same;
		}
		return path || [];
	}

	/* For each node 1 where it or a frame around it matches; null for an empty query. */
	matching(query) {
		const q = query.trim().toLowerCase();
		if (!q)
			return null;
		const {frames, nodes, strings} = this, hit = strings.map((s) => s.toLowerCase().includes(q));
		const frameHit = new Uint8Array(frames.line.length), nodeHit = new Uint8Array(nodes.parent.length);
		for (let f = 0; f < frameHit.length; f++)
			frameHit[f] = hit[frames.function[f]] || hit[frames.file[f]] || hit[frames.module[f]] ? 1 : 0;
		for (let n = 1; n < nodeHit.length; n++)
			nodeHit[n] = frameHit[nodes.frame[n]] | nodeHit[nodes.parent[n]];
		return nodeHit;
	}
}

/* The most frequent of nodes: {node, share of all}; unknown stacks (0) count but never win over a known one. */
export function mostFrequent(nodes) {
	const counts = new Map();
	let best = 0, most = 0;
	for (const node of nodes)
		counts.set(node, (counts.get(node) || 0) + 1);
	for (const [node, n] of counts)
		if (node > 0 && n > most)
			[best, most] = [node, n];
	return {node: best, share: nodes.length ? most / nodes.length : 0, different: counts.size};
}

/*
 * A tree to draw: {frame, value, children, self, roles}, children largest first.  `samples` are [node, value], for a
 * comparison with what it was before and after, else with the number of its role.
 * inverted: the innermost frame is at the root.
 */
export function buildTree(stacks, samples, inverted = false) {
	const make = (frame) => ({frame, value: 0, self: 0, before: 0, after: 0, roles: [], children: [], index: new Map()});
	const root = make(-1);
	for (const [node, value, before = 0, after = 0, role = 0] of samples) {
		if (!(value > 0))
			continue;
		const path = stacks.path(node);
		if (inverted)
			path.reverse();
		root.value += value;
		root.before += before;
		root.after += after;
		let at = root;
		for (const frame of path.length ? path : [-2]) {
			let next = at.index.get(frame);
			if (!next) {
				next = make(frame);
				at.index.set(frame, next);
				at.children.push(next);
			}
			next.value += value;
			next.before += before;
			next.after += after;
			next.roles[role] = (next.roles[role] || 0) + value;
			at = next;
		}
		at.self += value;
	}
	const todo = [root];
	while (todo.length) {
		const node = todo.pop();
		delete node.index;
		node.children.sort((a, b) => b.value - a.value);
		todo.push(...node.children);
	}
	return root;
}
