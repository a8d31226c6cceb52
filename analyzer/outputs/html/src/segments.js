/* SPDX-License-Identifier: MIT */
/* PyTorch's segments and the blocks in them at a moment: what is used, what is kept, and in how many pieces. */
import {h, replace} from "./dom.js";
import {bytes, count, fine, instant, percent} from "./format.js";

const ROW = 18;
const GAP = 4;

/* Free pieces of each segment: {segment, offset, bytes}. */
export function freePieces(map) {
	const free = [], n = map.segment_bytes.length, end = new Float64Array(n);
	for (let b = 0; b < map.block_segment.length; b++) { /* ordered by segment, then offset */
		const s = map.block_segment[b];
		if (map.block_offset[b] > end[s])
			free.push({segment: s, offset: end[s], bytes: map.block_offset[b] - end[s]});
		end[s] = Math.max(end[s], map.block_offset[b] + map.block_bytes[b]);
	}
	for (let s = 0; s < n; s++)
		if (map.segment_bytes[s] > end[s])
			free.push({segment: s, offset: end[s], bytes: map.segment_bytes[s] - end[s]});
	return free;
}

/* Unused memory that the largest free piece cannot serve, as a part of all unused memory. */
export function fragmentation(free) {
	const total = free.reduce((a, f) => a + f.bytes, 0), largest = free.reduce((a, f) => Math.max(a, f.bytes), 0);
	return {total, largest, part: total ? 1 - largest / total : 0};
}

export class Segments {
	constructor({page, stacks, state, palette, scope}) {
		Object.assign(this, {page, stacks, state, palette, scope});
		this.choice = h("select", {"aria-label": "Moment", onchange: (event) => state.set({map: event.target.value})});
		this.summary = h("p", {});
		this.canvas = h("canvas", {class: "segments", tabindex: "0", role: "img"});
		this.line = h("div", {class: "detail", "aria-live": "polite"});
		this.node = h("div", {}, h("p", {class: "controls"}, h("label", {}, "Moment ", this.choice)), this.summary, this.canvas, this.line);
		this.canvas.addEventListener("mousemove", (event) => this.hover(event));
		this.canvas.addEventListener("keydown", (event) => this.key(event));
		new ResizeObserver(() => this.canvas.clientWidth && this.canvas.clientWidth !== this.width && this.paint()).observe(this.node);
	}

	maps() {
		const {process, device} = this.scope();
		const fit = this.page.segments.filter((m) => (process === null || m.process === process) && (device === null || m.device === device));
		return fit.length ? fit : this.page.segments;
	}

	draw() {
		const maps = this.maps(), names = {oom: "out of memory", end: "the end", peak: "the peak", largest: "the largest moment kept"};
		if (!maps.length)
			return;
		const at = Math.min(maps.length - 1, this.state.number("map") || 0);
		replace(this.choice, maps.map((m, i) => h("option", {value: String(i), selected: i === at},
			`${names[m.kind] || m.kind}, ${instant(m.at, fine(this.page.duration_ns))}, ${this.who(m)}`)));
		this.map = maps[at];
		this.free = freePieces(this.map);
		const used = this.map.block_bytes.reduce((a, b) => a + b, 0), f = fragmentation(this.free);
		replace(this.summary, h("strong", {}, bytes(used)), " in tensors, ", h("strong", {}, bytes(f.total)), ` kept and unused in ${count(this.free.length)} pieces, the largest `,
			h("strong", {}, bytes(f.largest)), f.total ? `: a larger request takes new memory of the device, or fails, though ${bytes(f.total)} are unused (${percent(f.part, 1)} fragmented)` : "",
			this.map.left_out ? `. ${this.map.left_out}` : "");
		this.canvas.setAttribute("aria-label", this.summary.textContent);
		this.paint();
	}

	who(m) {
		const p = this.page.processes[m.process];
		return `${p.rank === null ? `pid ${p.pid}` : `rank ${p.rank}`} device ${m.device ?? "?"}`;
	}

	/* Segments flow in lines, one scale for all; a segment wider than a line is cut into several. */
	layout(width) {
		const {segment_bytes: sizes} = this.map, total = sizes.reduce((a, b) => a + b, 0);
		const lines = Math.max(4, Math.min(28, Math.ceil(sizes.length / 3)));
		const scale = (width * lines) / Math.max(1, total);
		const order = Array.from(sizes.keys()).sort((a, b) => sizes[b] - sizes[a]), pieces = [];
		let x = 0, y = 0;
		for (const s of order) {
			const whole = Math.max(3, sizes[s] * scale);
			if (x > 0 && x + Math.min(whole, width) > width)
				[x, y] = [0, y + 1];
			for (let done = 0; done < whole - 0.01; ) {
				const part = Math.min(whole - done, width - x);
				pieces.push({s, x, y, width: part, from: (done / whole) * sizes[s], to: ((done + part) / whole) * sizes[s]});
				done += part;
				x += part + GAP;
				if (x >= width - 2)
					[x, y] = [0, y + 1];
			}
		}
		return {pieces, height: (pieces.length ? pieces[pieces.length - 1].y + 1 : 0) * (ROW + GAP)};
	}

	paint() {
		if (!this.map)
			return;
		const r = devicePixelRatio, width = Math.max(240, this.node.clientWidth), p = this.palette();
		const {pieces, height} = this.layout(width), hit = this.stacks.matching(this.state.get("q"));
		this.width = this.canvas.clientWidth;
		this.pieces = pieces;
		this.canvas.width = width * r;
		this.canvas.height = height * r;
		this.canvas.style.height = `${height}px`;
		const c = this.canvas.getContext("2d");
		c.scale(r, r);
		const of = new Map();
		for (let b = 0; b < this.map.block_segment.length; b++) {
			const s = this.map.block_segment[b];
			of.has(s) ? of.get(s).push(b) : of.set(s, [b]);
		}
		this.blocksOf = of;
		for (const piece of pieces) {
			const y = piece.y * (ROW + GAP), per = piece.width / (piece.to - piece.from);
			c.fillStyle = p.free;
			c.fillRect(piece.x, y, piece.width, ROW);
			for (const b of of.get(piece.s) || []) {
				const from = Math.max(this.map.block_offset[b], piece.from), to = Math.min(this.map.block_offset[b] + this.map.block_bytes[b], piece.to);
				if (to <= from)
					continue;
				const w = (to - from) * per;
				c.fillStyle = hit && hit[this.map.block_stack[b]] ? p.hit : p.layers[this.map.block_stack[b] % p.layers.length];
				c.fillRect(piece.x + (from - piece.from) * per, y, w > 3 ? w - 0.6 : w, ROW);
			}
			c.strokeStyle = p.soft;
			c.lineWidth = 1;
			c.strokeRect(piece.x + 0.5, y + 0.5, Math.max(1, piece.width - 1), ROW - 1);
		}
	}

	hover(event) {
		const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
		const piece = this.pieces.find((q) => x >= q.x && x <= q.x + q.width && y >= q.y * (ROW + GAP) && y <= q.y * (ROW + GAP) + ROW);
		if (!piece)
			return;
		const offset = piece.from + ((x - piece.x) / piece.width) * (piece.to - piece.from), {map} = this;
		const block = (this.blocksOf.get(piece.s) || []).find((b) => offset >= map.block_offset[b] && offset < map.block_offset[b] + map.block_bytes[b]);
		this.show(piece.s, block, offset);
	}

	show(segment, block, offset) {
		const {map} = this, size = bytes(map.segment_bytes[segment]);
		if (block === undefined) {
			const hole = this.free.find((f) => f.segment === segment && offset >= f.offset && offset <= f.offset + f.bytes);
			replace(this.line, `unused, ${hole ? bytes(hole.bytes) : "?"} of a segment of ${size}`);
			return;
		}
		const path = this.stacks.path(map.block_stack[block]).slice(-6);
		replace(this.line, h("strong", {}, bytes(map.block_bytes[block])), ` block in a segment of ${size}`,
			h("ol", {class: "frames"}, path.map((f) => h("li", {class: this.stacks.isPython(f) ? "py" : "nat"}, this.stacks.name(f)))));
	}

	key(event) {
		const d = {ArrowRight: 1, ArrowLeft: -1}[event.key];
		if (!d || !this.map || !this.map.block_segment.length)
			return;
		event.preventDefault();
		this.current = Math.max(0, Math.min(this.map.block_segment.length - 1, (this.current ?? -d) + d));
		this.show(this.map.block_segment[this.current], this.current, 0);
	}
}
