/* SPDX-License-Identifier: MIT */
/* Which lines make a picture: by role, line, library, kind, PyTorch, label or rank, of all ranks or one, all devices or one. */
import {Pyramid, difference, emptyBins, makeGrid, onGrid, stackUp, sum} from "./bins.js";
import {Uses} from "./uses.js";

/* Kinds that are memory of the device and add up to the "known" line. */
const KNOWN_KINDS = ["device", "pool", "vmm", "array", "graph"];
const MAX_LAYERS = 8;
const FINEST = 4096; /* cells for the figures beside the picture: more than a line has bins */

export const GROUPS = [
	["role", "Role"], ["line", "Line"], ["library", "Library"], ["kind", "Kind"], ["pytorch", "PyTorch"], ["label", "Label"], ["rank", "Rank"], ["host", "Host memory"],
];

/* The words for memory that holds no tensor; other frameworks' pools cannot tell it from memory without a name. */
export const restName = (page) => page.rest ?? "kept by PyTorch, unused";
export const hasPools = (page) => restName(page).includes("pools");

/* True: the maximum of a cell is only a bound, since the layer is a sum or a difference of lines, which need not be highest at once. */
export function isBound(layer) {
	return layer.lines?.length > 1 || Boolean(layer.minus?.length);
}

export class Series {
	constructor(page) {
		this.page = page;
		this.lines = page.lines.map((line) => ({...line, pyramid: new Pyramid(line)}));
		this.uses = new Uses(page);
		this.part = null;
	}

	/* Takes lines of a part of the run, which are drawn wherever they cover the view. */
	take(lines) {
		this.part = new Series({...this.page, lines});
		this.part.from = Math.min(...lines.map((line) => line.start));
		this.part.to = Math.max(...lines.map((line) => line.start + line.max.length * line.width));
	}

	/* The lines for a view: those of the part, if they cover it. */
	over(from, to) {
		return this.part && this.part.from <= from && Math.min(to, this.span()[1]) <= this.part.to ? this.part : this;
	}

	/* Width of the finest bins that a view has, in ns. */
	finest(from, to) {
		return Math.min(...this.over(from, to).lines.map((line) => line.width));
	}

	pick(scope, what) {
		return this.lines.filter((line) => line.what === what &&
			(scope.process === null || line.process === scope.process) &&
			(scope.device === null || line.device === scope.device));
	}

	groups(scope) {
		const has = (what) => this.pick(scope, what).length > 0;
		const ranks = new Set(this.pick({process: null, device: null}, "known").map((l) => l.process)).size > 1;
		const {role, line} = this.uses.groups(scope, new Set(this.pick(scope, "known").map((l) => `${l.process}/${l.device}`)));
		return GROUPS.filter(([key]) => ({role, line, kind: has("kind"), library: has("library"), pytorch: has("allocated"),
			label: has("label"), rank: ranks, host: has("rss") || has("cgroup")})[key])
			.map(([key, name]) => [key, key === "pytorch" && this.page.source === "telemetry" ? "Allocator" : name]);
	}

	/* The way to stack that was chosen, or the one that says most where none was. */
	choose(scope, by) {
		const groups = this.groups(scope).map(([key]) => key);
		return groups.includes(by) ? by : groups.includes("line") || !groups.includes("pytorch") ? groups[0] ?? "kind" : "pytorch";
	}

	/* [{name, lines, minus}] largest first, at most MAX_LAYERS, the rest as one */
	layersOf(scope, by) {
		const pick = (what) => this.pick(scope, what);
		let layers = [];
		if (by === "role" || by === "line")
			return this.uses.layers(scope, by, MAX_LAYERS);
		if (by === "pytorch" && this.page.source === "telemetry")
			return [{name: "allocated", lines: pick("allocated")}, {name: "reserved, unused", lines: pick("reserved"), minus: pick("allocated")}];
		if (by === "pytorch") {
			layers = [{name: "tensors", lines: pick("allocated")},
				{name: restName(this.page), lines: pick("reserved"), minus: pick("allocated")}];
			if (!this.page.window) /* a snapshot knows of its allocator only */
				layers.push({name: hasPools(this.page) ? "outside pools" : "outside PyTorch", lines: pick("known"), minus: pick("reserved")});
			return layers;
		}
		if (by === "host")
			return [...new Set(pick("kind").filter((l) => l.name.startsWith("host_")).map((l) => l.name))]
				.map((name) => ({name, lines: pick("kind").filter((l) => l.name === name)}));
		const byName = new Map(), what = by === "rank" ? "known" : by;
		for (const line of by === "rank" ? this.pick({...scope, process: null}, what) : pick(what)) {
			if (by === "kind" && !KNOWN_KINDS.includes(line.name))
				continue;
			const name = by === "rank" ? this.rankName(line.process) : line.name;
			if (!byName.has(name))
				byName.set(name, {name, lines: [], size: 0});
			const layer = byName.get(name);
			layer.lines.push(line);
			layer.size += line.peak;
		}
		layers = [...byName.values()].sort((a, b) => b.size - a.size);
		if (by === "label" && layers.length)
			layers.push({name: "outside labels", lines: pick("known"), minus: pick("label"), size: 0});
		if (layers.length > MAX_LAYERS) {
			const rest = layers.slice(MAX_LAYERS - 1);
			layers = layers.slice(0, MAX_LAYERS - 1);
			layers.push({name: `${rest.length} others`, lines: rest.flatMap((l) => l.lines),
				minus: rest.flatMap((l) => l.minus || [])});
		}
		return layers;
	}

	rankName(process) {
		const p = this.page.processes[process];
		return p.rank === null ? `pid ${p.pid}` : `rank ${p.rank}`;
	}

	/* From the first to the last that is known of what is in view. */
	span(scope = {process: null, device: null}) {
		const end = Math.max(1, this.page.duration_ns), lines = this.pick(scope, "known");
		return lines.length ? [Math.max(0, Math.min(...lines.map((l) => l.start))), Math.min(end, Math.max(...lines.map((l) => l.start + l.max.length * l.width)))] : [0, end];
	}

	/* The size of the one card in view, else null. */
	card(scope) {
		const cards = this.page.devices.filter((d) => d.room_bytes && (scope.device === null || d.device === scope.device) && (scope.process === null || d.processes.includes(scope.process)));
		return cards.length === 1 ? cards[0].room_bytes : null;
	}

	/* Everything to draw between two instants, in at most `most` columns. */
	picture(scope, by, from, to, most) {
		if (this.over(from, to) !== this)
			return this.part.picture(scope, by, from, to, most);
		const wide = by === "rank" ? {...scope, process: null} : scope;
		const layers = this.layersOf(scope, by);
		const totals = by === "host" ? layers.flatMap((l) => l.lines) : this.pick(wide, "known");
		const overlay = by === "host" ? [...this.pick(scope, "rss"), ...this.pick(scope, "cgroup")] : this.usedLines(wide);
		/* what other recorded processes held of the device, where they are not in the picture themselves */
		const others = by !== "host" && new Set(totals.map((line) => line.process)).size === 1 ? this.pick(wide, "others") : [];
		const hidden = this.pick(wide, "hidden"), all = [...totals, ...overlay];
		const finest = all.reduce((best, line) => (!best || line.width < best.width ? line : best), null);
		const grid = makeGrid(finest ? finest.start : 0, finest ? finest.width : Math.max(1, (to - from) / most), from, to, most);
		const add = (lines) => (lines.length ? sum(lines.map((line) => onGrid(line.pyramid, grid)), grid.n) : emptyBins(grid.n));
		const total = add(totals), seen = by === "role" || by === "line" ? this.uses.bins(scope, by, layers, grid, total) : null;
		const bins = seen || layers.map((layer) => layer.minus && layer.minus.length ? difference(add(layer.lines), add(layer.minus)) : add(layer.lines));
		return {grid, layers, bins, total, seen: seen && this.uses.count(scope, by), overlaid: by === "host" ? "host" : "device", tops: stackUp(bins, grid.n),
			used: overlay.length ? add(overlay) : null, usedName: by === "host" ? "process memory (RSS)" : "device-wide use",
			others: others.some((line) => line.peak > 0) ? add(others) : null,
			hidden: hidden.length === 1 ? add(hidden) : null, several: totals.length > 1, totalLines: totals,
			stackLines: by === "pytorch" ? [...layers[0].lines, ...totals] : totals};
	}

	/* The figures of a view, from the data's own bins: they are the same in a window of any width. */
	figures(scope, by, from, to) {
		const {grid, total, layers, bins} = this.picture(scope, by, from, to, FINEST);
		const known = Array.from(total.known, (k, i) => (k ? i : -1)).filter((i) => i >= 0);
		if (!known.length)
			return {most: null, layers: []};
		const at = known.reduce((best, i) => (total.max[i] > total.max[best] ? i : best));
		return {most: total.max[at], at: Math.max(from, Math.min(to, grid.start + (at + 0.5) * grid.width)),
			mean: known.reduce((a, i) => a + total.mean[i], 0) / known.length,
			layers: layers.map((layer, k) => ({k, name: layer.name, max: layer.uses ? bins[k].max[at] : known.reduce((m, i) => Math.max(m, bins[k].max[i]), 0)}))
				.filter((l) => l.max > 0).sort((a, b) => b.max - a.max)};
	}

	/* Several processes sample one device: it counts once. */
	usedLines(scope) {
		const seen = new Set();
		return this.pick(scope, "used").filter((line) => {
			const key = line.shared ?? `${line.process}/${line.device}`;
			return !seen.has(key) && seen.add(key);
		});
	}
}
