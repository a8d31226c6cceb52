/* SPDX-License-Identifier: MIT */
/* Icicle or flame graph of a moment, the peak, the end, leaks or churn. */
import flamegraph from "d3-flame-graph";
import {select} from "d3-selection";
import {h, replace} from "./dom.js";
import {bytes, count, fine, instant, percent} from "./format.js";
import {buildTree} from "./stacks.js";
import {mix} from "./theme.js";

const ROW = 20;
const LEAST = 12; /* pixels: narrower cells are one, with their number */
const NAMED = 36; /* a narrower cell has no name, nor cells below */
const SMALL = -3; /* its frame */

/* d3-flame-graph asks for a function; ours shows nothing by itself and feeds the details line. */
function details(show) {
	const tip = () => {};
	tip.show = (event, node) => show(node);
	tip.hide = () => {};
	tip.destroy = () => {};
	return tip;
}

export class Flame {
	constructor({page, stacks, state, palette, scope, series, ranges, range, sayRange}) {
		Object.assign(this, {page, stacks, state, palette, scope, series, ranges, range, sayRange});
		this.title = h("h3", {"aria-live": "polite"});
		this.chart = h("div", {class: "flame", tabindex: "0", role: "application", "aria-label":
			"Stacks. Arrow keys walk through frames, Enter zooms in, Escape zooms out."});
		this.line = h("p", {class: "detail", "aria-live": "polite"});
		this.found = h("span", {class: "soft"});
		this.key = h("p", {class: "key"});
		this.node = h("div", {}, this.title, this.line, this.chart);
		this.chart.addEventListener("keydown", (event) => this.pressed(event));
		new ResizeObserver(() => {
			if (this.width && Math.abs(this.chart.clientWidth - this.width) > 1)
				this.draw();
		}).observe(this.chart);
	}

	inScope(m) {
		const {process, device} = this.scope();
		return (process === null || m.process === process) && (device === null || m.device === null || m.device === device);
	}

	/* What to draw: {title, samples: [node, value]} */
	choose() {
		const what = this.state.get("flame"), counts = this.state.get("value") === "count";
		let moments = this.page.moments.filter((m) => this.inScope(m)), title = "";
		if (what === "range") {
			const scope = this.scope(), range = this.range();
			if (range && !this.ranges.canTell(scope))
				return {title: "Of a range of time this report cannot tell", samples: []};
			const {rows, stretch} = this.ranges.rows(scope, range);
			return {title: range ? `Born in ${this.sayRange(stretch)} and still held at its end` : "Born in the whole run and still held at its end",
				samples: rows.map((row) => [row.stack, counts ? row.kept : row.keptBytes, 0, 0, row.role])};
		}
		if (what === "moment") {
			const at = this.state.number("at"), timed = moments.filter((m) => m.at !== null && m.kind !== "churn" && m.kind !== "leaks");
			if (at === null)
				return this.chooseKind(moments, "peak", counts, "At the peak");
			const near = new Map();
			for (const m of timed) {
				const key = `${m.process}/${m.device}`, best = near.get(key);
				if (!best || Math.abs(m.at - at) < Math.abs(best.at - at))
					near.set(key, m);
			}
			moments = [...near.values()];
			const time = moments.length ? moments[0].at : null;
			title = time === null ? "No stacks were kept for this rank" :
				`Live at ${instant(time, fine(this.page.duration_ns))}${Math.abs(time - at) > 1e6 ? ` (the nearest that this page has)` : ""}`;
			return {title, samples: this.samplesOf(moments, counts)};
		}
		return this.chooseKind(moments, what, counts, {peak: "Live at the peak", end: "Live at the end", leaks: "Leaks",
			churn: counts ? "Churn: how often was allocated" : "Churn: bytes allocated in all", oom: "Live at the first out-of-memory error"}[what]);
	}

	chooseKind(moments, kind, counts, title) {
		const of = moments.filter((m) => m.kind === kind);
		const at = of.length === 1 && of[0].at !== null && (kind === "peak" || kind === "oom") ? `, ${instant(of[0].at, fine(this.page.duration_ns))}` : "";
		return {title: `${title}${at}:`, samples: this.samplesOf(of, counts)};
	}

	samplesOf(moments, counts) {
		return moments.flatMap((m) => Array.from(m.stack, (stack, i) => [stack, counts ? m.blocks[i] : m.bytes[i], 0, 0, this.series.uses.roleOf(m.process, stack)]));
	}

	/* The children of a node as they are drawn below the node in view: narrow ones are one cell, which opens when it is clicked. */
	cells({children}, whole) {
		const [wide, narrow] = [children.filter((c) => c.value * this.width >= LEAST * whole), children.filter((c) => c.value * this.width < LEAST * whole)];
		return narrow.length < 2 ? children : [...wide, {frame: SMALL, value: sum(narrow, "value"), self: 0, before: sum(narrow, "before"), after: sum(narrow, "after"), roles: [], children: narrow}];
	}

	/* path: from the root to the node in view, of which only that one is drawn. */
	toData(node, path, depth = 0) {
		const {frame} = node, way = depth < path.length - 1, whole = path.at(-1).value;
		const name = frame === -1 ? "all" : frame === -2 ? "no stack recorded" : frame === SMALL ? `+${count(node.children.length)} small` : this.stacks.name(frame);
		const closed = depth > 300 || (node !== path.at(-1) && (frame === SMALL || node.value * this.width < NAMED * whole));
		const children = way ? [path[depth + 1]] : closed ? [] : this.cells(node, whole);
		return {node, name: this.label(name, node), frame, value: way ? whole : node.value, children: children.map((c) => this.toData(c, path, depth + 1))};
	}

	zoom(path) {
		this.path = path;
		this.paint();
		this.focus(select(this.chart).datum().find((d) => d.data.node === path.at(-1)));
	}

	draw() {
		const {title, samples} = this.choose(), inverted = this.state.get("inverted") === "1";
		this.tree = buildTree(this.stacks, samples, inverted);
		this.hasRoles = samples.some(([, , , , role]) => role);
		this.counts = this.state.get("value") === "count";
		const total = this.tree.value;
		replace(this.title, title, h("span", {class: "soft"}, total ? this.total(total) : ""), " ", this.found);
		this.line.textContent = "";
		this.current = null;
		this.path = [this.tree];
		this.drawKey();
		if (total)
			this.paint();
		else
			replace(this.chart, h("p", {class: "empty"}, "No memory of this kind in this rank."));
	}

	/* The colours in use: of roles, the largest first, else of languages. */
	drawKey() {
		const p = this.palette(), roles = [], top = this.tree.children.flatMap((c) => [...c.roles.entries()]);
		top.forEach(([role, value = 0]) => (roles[role] = (roles[role] || 0) + value));
		const shown = this.hasRoles ? [...roles.keys()].filter((role) => roles[role]).sort((a, b) => !a - !b || roles[b] - roles[a])
			.map((role) => [this.ofRole(role), role ? this.page.roles[role] : "others"]) : [[p.python, "Python"], [p.native, "native"]].filter((_, i) => this.page.frames.python.includes(1 - i));
		replace(this.key, shown.map(([background, name]) => h("span", {}, h("span", {class: "swatch", style: {background}}), name)));
	}

	paint() {
		this.width = Math.max(240, this.chart.clientWidth || 800);
		this.chart.textContent = "";
		this.graph = flamegraph().width(this.width).cellHeight(ROW).inverted(this.state.get("form") !== "flame").minFrameSize(1)
			.transitionDuration(0).sort((a, b) => (a.data.frame === SMALL) - (b.data.frame === SMALL) || b.value - a.value).selfValue(false).resetHeightOnZoom(true)
			.setColorMapper((node) => this.fill(node.data, node.highlight)).tooltip(details((node) => this.show(node)))
			.setSearchMatch(({data}, q) => this.matches(data.frame, q) || (!data.children.length && this.hides(data.node, q))).setSearchHandler((hits, sum, all) => {
				this.found.textContent = this.state.get("q") ? `${percent(sum, all)} matches` : "";
			}).setLabelHandler((node) => node.data.name).onClick((node) => this.zoom(node.ancestors().map((d) => d.data.node).reverse()));
		select(this.chart).datum(this.toData(this.tree, this.path)).call(this.graph);
		this.search();
		this.trim();
	}

	/* The graph leaves room for a title above its frames; there is none. */
	trim() {
		const frames = [...this.chart.querySelectorAll("g.frame")], svg = this.chart.querySelector("svg");
		const ys = frames.map((g) => Number((/,\s*([\d.]+)/.exec(g.getAttribute("transform")) || [0, 0])[1]));
		if (ys.length) {
			const top = Math.min(...ys), bottom = Math.max(...ys) + ROW;
			svg.setAttribute("viewBox", `0 ${top} ${this.width} ${bottom - top}`);
			svg.setAttribute("height", bottom - top);
		}
	}

	label(name) {
		return name;
	}

	total(value) {
		return `  ${this.say(value)}${this.counts ? " blocks" : ""}`;
	}

	fill(data, hit) {
		const p = this.palette(), {frame, node} = data, most = node.roles.reduce((best, value, role) => (value > (node.roles[best] || 0) ? role : best), 0);
		return hit ? p.hitFill : this.hasRoles ? this.ofRole(most) : frame < 0 || this.stacks.isNote(frame) ? p.unknown : this.stacks.isPython(frame) ? p.python : p.native;
	}

	/* The time line's colours, pale enough for text. */
	ofRole(role) {
		const p = this.palette();
		return role ? mix(p.paper, p.layers[(role - 1) % p.layers.length], 0.5) : p.unknown;
	}

	matches(frame, q) {
		if (frame < 0)
			return false;
		const f = this.stacks.frame(frame), low = q.toLowerCase();
		return f.function.toLowerCase().includes(low) || f.file.toLowerCase().includes(low) || f.module.toLowerCase().includes(low);
	}

	/* True: a cell below, which is too narrow to be drawn, matches. */
	hides(node, q) {
		return node.children.some((child) => this.matches(child.frame, q) || this.hides(child, q));
	}

	search() {
		const q = this.state.get("q").trim();
		if (!this.graph || !this.tree.value)
			return;
		if (q) {
			this.graph.search(q);
		} else {
			this.found.textContent = "";
			this.graph.clear();
		}
	}

	say(value) {
		return this.counts ? count(value) : bytes(value);
	}

	show(node) {
		const {data} = node, place = data.frame >= 0 ? this.stacks.place(data.frame) : "";
		this.current = node;
		const {value, self} = data.node;
		replace(this.line, h("strong", {}, data.name), ` ${this.say(value)}, ${percent(value, this.tree.value)}`,
			self && self < value ? `, ${this.say(self)} of it by itself` : "", " ", h("span", {class: "soft"}, place));
	}

	pressed(event) {
		if (!this.graph || !this.tree.value)
			return;
		const root = select(this.chart).datum(), at = this.current || root;
		const sibling = (d) => at.parent && at.parent.children[at.parent.children.indexOf(at) + d];
		const to = {ArrowDown: at.children && at.children[0], ArrowUp: at.parent, ArrowRight: sibling(1), ArrowLeft: sibling(-1)}[event.key];
		if (event.key.startsWith("Arrow")) {
			event.preventDefault();
			if (to)
				this.focus(to);
		} else if (event.key === "Enter" && at) {
			this.zoom(at.ancestors().map((d) => d.data.node).reverse());
		} else if (event.key === "Escape") {
			this.zoom([this.tree]);
		}
	}

	focus(node) {
		this.show(node);
		select(this.chart).selectAll("g.frame").classed("current", (d) => d === node);
	}
}

const sum = (nodes, key) => nodes.reduce((a, node) => a + node[key], 0);
