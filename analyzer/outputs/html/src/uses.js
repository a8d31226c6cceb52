/* SPDX-License-Identifier: MIT */
/* Memory by its use or its line: known at the moments whose stacks the page has, among them the peak and the error. */
import {emptyBins} from "./bins.js";

const SHARP = ["peak", "oom"]; /* they may be of an instant: a bin that has one shows it */
const KINDS = ["time", "end", ...SHARP];

export class Uses {
	constructor(page) {
		this.page = page;
		this.names = new Map();
		const {roles = []} = page;
		for (const p of page.places ?? [])
			p.stack.forEach((stack, i) => { /* those that held most come first */
				const key = `${p.process}/${stack}`, [line] = page.strings[p.name[i]].split(" < ");
				if (!this.names.has(key))
					this.names.set(key, {line, role: roles[p.role[i]], number: p.role[i]});
			});
	}

	roleOf(process, stack) {
		return this.names.get(`${process}/${stack}`)?.number ?? 0;
	}

	/* The moments in view by process and device, in their order, with what each held by name. */
	of(scope, by) {
		const key = `${scope.process}/${scope.device}/${by}`;
		if (this.last?.key === key)
			return this.last;
		const parts = new Map(), layers = new Map();
		for (const m of this.page.moments ?? []) {
			if (!KINDS.includes(m.kind) || m.at === null || m.device === null || (scope.process !== null && m.process !== scope.process) || (scope.device !== null && m.device !== scope.device))
				continue;
			const part = `${m.process}/${m.device}`, held = new Map();
			m.stack.forEach((stack, i) => {
				const known = this.names.get(`${m.process}/${stack}`), role = by === "role" && known?.number ? known.number : 0;
				const name = role ? known.role : this.note(stack) ?? known?.line ?? "others", layer = layers.get(name) ?? {name, role, other: !known, uses: true, size: 0};
				layers.set(name, layer);
				layer.size = Math.max(layer.size, m.bytes[i]);
				held.set(name, (held.get(name) || 0) + m.bytes[i]);
			});
			parts.set(part, [...(parts.get(part) ?? []), {at: m.at, kind: m.kind, held, sum: m.bytes.reduce((a, b) => a + b, 0)}]);
		}
		for (const list of parts.values())
			list.sort((a, b) => a.at - b.at);
		return (this.last = {key, parts, layers: [...layers.values()]});
	}

	/* Of words in place of a stack the outermost, else null: "kept by PyTorch, unused", "made before the window", "12 smaller places", "CUDA graphs in 3 pools". */
	note(stack) {
		const {strings, frames, nodes} = this.page;
		let outermost;
		for (; stack; stack = nodes.parent[stack]) {
			outermost = nodes.frame[stack];
			if (frames.module[outermost] || frames.file[outermost] || frames.python[outermost])
				return null;
		}
		return strings[frames.function[outermost]]?.replace(/^\d+ (?=smaller places$)| in \d+ pools$/, "");
	}

	/* What can be told of the processes and devices in view. */
	groups(scope, wanted) {
		const {parts} = this.of(scope, "role"), line = wanted.size > 0 && [...wanted].every((part) => parts.has(part));
		return {line, role: line && this.last.layers.some((layer) => layer.role)};
	}

	/* Roles first, in their order, then the largest lines, their rest as one, then what has no line. */
	layers(scope, by, most) {
		const all = this.of(scope, by).layers, taken = new Set(all.map((layer) => layer.role)), notes = all.filter((layer) => layer.other);
		const named = all.filter((layer) => !layer.other).sort((a, b) => Boolean(b.role) - Boolean(a.role) || a.role - b.role || b.size - a.size);
		const room = named.length + notes.length > most ? Math.max(1, most - notes.length - 1) : most, rest = named.slice(room);
		const shown = [...named.slice(0, room), ...(rest.length ? [{name: `${rest.length} others`, names: rest.map((layer) => layer.name), uses: true}] : []), ...notes];
		let free = 0;
		for (const layer of shown) {
			const unused = layer.other && layer.name.endsWith("unused"); /* grey */
			while (!unused && !layer.role && taken.has(++free));
			layer.colour = unused ? 0 : layer.role || free;
		}
		return shown;
	}

	/* How many moments are known of a device. */
	count(scope, by) {
		return Math.max(...[...this.of(scope, by).parts.values()].map((list) => list.length));
	}

	/* Of each bin the last moment before its end; what was given back since is taken off all parts alike. */
	bins(scope, by, layers, grid, total) {
		const lists = [...this.of(scope, by).parts.values()], bins = layers.map(() => emptyBins(grid.n));
		const next = lists.map(() => 0);
		for (let i = 0; i < grid.n; i++) {
			const from = grid.start + i * grid.width, to = from + grid.width;
			lists.forEach((list, l) => {
				let sharp = null;
				for (let m; (m = list[next[l]])?.at < to; next[l]++)
					if (m.at >= from && SHARP.includes(m.kind) && !(sharp?.sum >= m.sum))
						sharp = m;
				const shown = sharp ?? list[next[l] - 1];
				if (shown && !(shown.kind === "end" && shown.at < from))
					layers.forEach((layer, k) => (layer.names ?? [layer.name]).forEach((name) => (bins[k].mean[i] += shown.held.get(name) || 0)));
			});
			const sum = bins.reduce((a, b) => a + b.mean[i], 0), part = sum > total.max[i] ? total.max[i] / sum : 1;
			for (const b of bins) {
				b.mean[i] *= part;
				b.min[i] = b.max[i] = b.mean[i];
				b.known[i] = total.known[i];
			}
		}
		return bins;
	}
}
