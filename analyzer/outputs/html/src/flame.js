/* SPDX-License-Identifier: MIT */
/* Icicle or flame graph of a moment, the peak, the end, leaks or churn. */
import flamegraph from "d3-flame-graph";
import {select} from "d3-selection";
import {h, replace} from "./dom.js";
import {bytes, count, fine, instant, percent} from "./format.js";
import {buildTree} from "./stacks.js";

const ROW = 20;

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
		this.node = h("div", {}, this.title, this.line, this.chart);
		this.chart.addEventListener("keydown", (event) => this.key(event));
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
				return {title: "Of a range of time this report cannot tell", samples: [], moments: []};
			const {rows, stretch} = this.ranges.rows(scope, range);
			return {title: range ? `Born in ${this.sayRange(stretch)} and still held at its end` : "Born in the whole run and still held at its end",
				samples: rows.map((row) => [row.stack, counts ? row.kept : row.keptBytes]), moments: []};
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
				`Live at ${instant(time, fine(this.page.duration_ns))}${Math.abs(time - at) > 1e6 ? ` (the nearest that this page has; for ${instant(at, fine(this.page.duration_ns))}: stormlog-analyze tree --at ${(at / 1e9).toFixed(4)})` : ""}`;
			return {title, samples: samplesOf(moments, counts), moments};
		}
		return this.chooseKind(moments, what, counts, {peak: "Live at the peak", end: "Live at the end", leaks: "Leaks",
			churn: counts ? "Churn: how often was allocated" : "Churn: bytes allocated in all", oom: "Live at the first out-of-memory error"}[what]);
	}

	chooseKind(moments, kind, counts, title) {
		const of = moments.filter((m) => m.kind === kind);
		const at = of.length === 1 && of[0].at !== null && (kind === "peak" || kind === "oom") ? `, ${instant(of[0].at, fine(this.page.duration_ns))}` : "";
		return {title: `${title}${at}:`, samples: samplesOf(of, counts), moments: of};
	}

	toData(node, depth = 0) {
		const {frame} = node;
		const name = frame === -1 ? "all" : frame === -2 ? "no stack recorded" : this.stacks.name(frame);
		return {name: this.label(name, node), frame, value: node.value, self: node.self, before: node.before, after: node.after, children: depth < 300 ? node.children.map((c) => this.toData(c, depth + 1)) : []};
	}

	draw() {
		const {title, samples} = this.choose(), inverted = this.state.get("inverted") === "1";
		this.tree = buildTree(this.stacks, samples, inverted);
		this.counts = this.state.get("value") === "count";
		this.width = Math.max(240, this.chart.clientWidth || 800);
		const total = this.tree.value;
		replace(this.title, title, h("span", {class: "soft"}, total ? this.total(total) : ""), " ", this.found);
		this.chart.textContent = "";
		this.line.textContent = "";
		this.current = null;
		if (!total) {
			replace(this.chart, h("p", {class: "empty"}, "No memory of this kind in this rank."));
			return;
		}
		this.graph = flamegraph().width(this.width).cellHeight(ROW).inverted(this.state.get("form") !== "flame").minFrameSize(1)
			.transitionDuration(0).sort((a, b) => b.value - a.value).selfValue(false).resetHeightOnZoom(true)
			.setColorMapper((node) => this.fill(node.data, node.highlight)).tooltip(details((node) => this.show(node)))
			.setSearchMatch((node, q) => this.matches(node.data.frame, q)).setSearchHandler((hits, sum, all) => {
				this.found.textContent = this.state.get("q") ? `${percent(sum, all)} matches` : "";
			}).setLabelHandler((node) => node.data.name).onClick((node) => {
				this.show(node);
				this.trim();
			});
		select(this.chart).datum(this.toData(this.tree)).call(this.graph);
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
		const p = this.palette();
		return hit ? p.hitFill : data.frame < 0 || this.stacks.isNote(data.frame) ? p.unknown : this.stacks.isPython(data.frame) ? p.python : p.native;
	}

	matches(frame, q) {
		if (frame < 0)
			return false;
		const f = this.stacks.frame(frame), low = q.toLowerCase();
		return f.function.toLowerCase().includes(low) || f.file.toLowerCase().includes(low) || f.module.toLowerCase().includes(low);
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
		replace(this.line, h("strong", {}, data.name), ` ${this.say(data.value)}, ${percent(data.value, this.tree.value)}`,
			data.self && data.self < data.value ? `, ${this.say(data.self)} of it by itself` : "", " ", h("span", {class: "soft"}, place));
	}

	key(event) {
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
			this.graph.zoomTo(at);
			this.trim();
			this.focus(at);
		} else if (event.key === "Escape") {
			this.graph.resetZoom();
			this.trim();
			this.focus(root);
		}
	}

	focus(node) {
		this.show(node);
		select(this.chart).selectAll("g.frame").classed("current", (d) => d === node);
	}
}

export function samplesOf(moments, counts) {
	const out = [];
	for (const m of moments)
		for (let i = 0; i < m.stack.length; i++)
			out.push([m.stack[i], counts ? m.blocks[i] : m.bytes[i]]);
	return out;
}
