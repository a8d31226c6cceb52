/* SPDX-License-Identifier: MIT */
/* Ranks x time as a heat map, one row a rank, outliers first; and the table of ranks. */
import {h, replace} from "./dom.js";
import {bytes, count, fine, instant, visible} from "./format.js";
import {heatScale} from "./theme.js";

const LABEL = 76;
const VIEW = 420;
const FIRST_ROWS = 16; /* the findings below are not to be scrolled for */

/* Distance from the median in units of the median deviation: what makes a rank an outlier. */
export function scores(values) {
	const sorted = [...values].filter((v) => v !== null).sort((a, b) => a - b);
	if (!sorted.length)
		return values.map(() => 0);
	const median = sorted[sorted.length >> 1];
	const deviations = sorted.map((v) => Math.abs(v - median)).sort((a, b) => a - b);
	const mad = Math.max(deviations[deviations.length >> 1], median * 0.005, 1);
	return values.map((v) => (v === null ? 0 : Math.abs(v - median) / mad));
}

export function orderOf(page, order) {
	const n = page.processes.length, rows = Array.from({length: n}, (_, i) => i);
	const number = (i) => page.processes[i].rank ?? 1e9 + i;
	const peak = scores(page.processes.map((p) => p.peak)), end = scores(page.processes.map((p) => p.end));
	const weight = (i) => (page.processes[i].ooms ? 1e6 : 0) + (["killed", "interrupted"].includes(page.processes[i].ended) ? 1e5 : 0) + Math.max(peak[i], end[i]);
	if (order === "peak")
		return rows.sort((a, b) => page.processes[b].peak - page.processes[a].peak || number(a) - number(b));
	if (order === "rank")
		return rows.sort((a, b) => number(a) - number(b));
	return rows.sort((a, b) => weight(b) - weight(a) || number(a) - number(b));
}

/* How a process ended. */
const endOf = (p) => (p.exit_status > 0 ? `exit status ${p.exit_status}` : p.ended);

/* Unknown for a process that used no device. */
const onDevice = (p, value) => (p.devices && !p.devices.length ? null : value);

export class Ranks {
	constructor({page, state, palette, onOpen}) {
		Object.assign(this, {page, state, palette, onOpen});
		this.canvas = h("canvas", {});
		this.spacer = h("div", {class: "spacer"}, this.canvas);
		this.scroll = h("div", {class: "heat", tabindex: "0", role: "application", "aria-label":
			"Memory of every rank over time. Up and down choose a rank, Enter opens it."}, this.spacer);
		this.line = h("p", {class: "detail", "aria-live": "polite"});
		this.scale = h("p", {class: "heat-scale soft"});
		this.table = h("div", {class: "table-wrap"});
		this.node = h("div", {}, this.scale, this.scroll, this.line, this.table);
		this.all = false;
		this.current = 0;
		this.scroll.addEventListener("scroll", () => this.paint());
		this.scroll.addEventListener("mousemove", (event) => this.hover(event));
		this.scroll.addEventListener("click", (event) => this.open(this.at(event).row));
		this.scroll.addEventListener("keydown", (event) => this.key(event));
		new ResizeObserver(() => this.paint()).observe(this.scroll);
	}

	rowHeight() {
		return Math.max(2, Math.min(24, Math.floor(VIEW / Math.max(1, this.rows.length))));
	}

	draw() {
		const q = this.state.get("q").trim().toLowerCase(), {heat} = this.page;
		this.order = orderOf(this.page, this.state.get("order"));
		this.hits = new Set(q ? this.order.filter((i) => this.words(i).includes(q)) : []);
		this.rows = this.order.filter((i) => heat.row[i] >= 0);
		this.scroll.style.height = `${Math.min(VIEW, this.rows.length * this.rowHeight()) + 2}px`;
		this.spacer.style.height = `${this.rows.length * this.rowHeight()}px`;
		const stops = this.palette().heat;
		replace(this.scale, "0 ", h("span", {class: "ramp", style: {background: `linear-gradient(90deg, ${stops.join(",")})`}}),
			` ${bytes(heat.scale)}. A cell is the maximum in it; a row is a rank, ${this.state.get("order") === "outliers" ? "those unlike the others first" : "in order"}. Click opens it on the time line.`);
		this.paint();
		this.drawTable();
	}

	words(i) {
		const p = this.page.processes[i];
		return `rank ${p.rank} ${p.host} ${p.pid} ${p.command.join(" ")} ${endOf(p)}`.toLowerCase();
	}

	name(i) {
		const p = this.page.processes[i];
		return p.rank === null ? `pid ${p.pid}` : `rank ${p.rank}`;
	}

	/* Only what is scrolled into view is painted. */
	paint() {
		if (!this.rows || !this.scroll.clientWidth)
			return;
		const r = devicePixelRatio, height = this.rowHeight(), width = this.scroll.clientWidth, view = this.scroll.clientHeight;
		const {heat} = this.page, p = this.palette(), of = heatScale(p), top = this.scroll.scrollTop;
		this.canvas.width = width * r;
		this.canvas.height = view * r;
		this.canvas.style.width = `${width}px`;
		this.canvas.style.height = `${view}px`;
		const c = this.canvas.getContext("2d"), cells = Math.max(1, width - LABEL);
		c.scale(r, r);
		c.fillStyle = p.paper;
		c.fillRect(0, 0, width, view);
		c.font = "12px system-ui, sans-serif";
		c.textBaseline = "middle";
		const colours = Array.from({length: 256}, (_, v) => `rgb(${of(v / 255).join(",")})`);
		const first = Math.floor(top / height), last = Math.min(this.rows.length, Math.ceil((top + view) / height));
		let labelled = -100;
		for (let k = first; k < last; k++) {
			const i = this.rows[k], y = k * height - top, row = heat.row[i] * heat.bins;
			for (let x = 0, b = 0; b < heat.bins; b++) {
				const end = Math.round(((b + 1) * cells) / heat.bins);
				c.fillStyle = colours[heat.values[row + b]];
				c.fillRect(LABEL + x, y, end - x, height > 6 ? height - 1 : height);
				x = end;
			}
			const oom = this.page.processes[i].ooms > 0;
			if (oom) {
				c.fillStyle = p.oom;
				c.fillRect(LABEL - 6, y, 4, Math.max(2, height - 1));
			}
			if (y > -2 && (y - labelled >= 14 || height >= 14)) {
				c.fillStyle = this.hits.has(i) ? p.hit : p.ink;
				c.fillText(this.name(i), 4, Math.max(7, y + height / 2), LABEL - 12);
				labelled = y;
			}
			if (this.hits.has(i)) {
				c.fillStyle = p.hit;
				c.fillRect(0, y, 3, Math.max(2, height - 1));
			}
			if (k === this.current) {
				c.strokeStyle = p.ink;
				c.lineWidth = 1.5;
				c.strokeRect(LABEL, y, cells - 1, Math.max(2, height - 1));
			}
		}
	}

	at(event) {
		const box = this.scroll.getBoundingClientRect(), y = event.clientY - box.top + this.scroll.scrollTop;
		const row = Math.max(0, Math.min(this.rows.length - 1, Math.floor(y / this.rowHeight())));
		const bin = Math.floor(((event.clientX - box.left - LABEL) / Math.max(1, this.scroll.clientWidth - LABEL)) * this.page.heat.bins);
		return {row, bin: Math.max(0, Math.min(this.page.heat.bins - 1, bin))};
	}

	hover(event) {
		const {row, bin} = this.at(event);
		this.say(row, bin);
	}

	say(row, bin) {
		const i = this.rows[row], {heat} = this.page, p = this.page.processes[i];
		this.current = row;
		const here = bin === null ? "" : `, up to ${bytes((heat.values[heat.row[i] * heat.bins + bin] / 255) * heat.scale)} at ${instant(heat.start + bin * heat.width, heat.width)}`;
		replace(this.line, h("strong", {}, this.name(i)), ` on ${visible(p.host)}, pid ${p.pid}: peak ${bytes(onDevice(p, p.peak))}${here}${p.ooms ? `, ${p.ooms} out of memory` : ""}`);
		this.paint();
	}

	open(row) {
		this.onOpen(this.rows[row]);
	}

	key(event) {
		const d = {ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20}[event.key];
		if (d) {
			event.preventDefault();
			const row = Math.max(0, Math.min(this.rows.length - 1, this.current + d)), height = this.rowHeight();
			if (row * height < this.scroll.scrollTop || (row + 1) * height > this.scroll.scrollTop + this.scroll.clientHeight)
				this.scroll.scrollTop = row * height - this.scroll.clientHeight / 2;
			this.say(row, null);
		} else if (event.key === "Enter") {
			this.open(this.current);
		}
	}

	/* The row of one device.  The rank's own row shows each figure of the device where it is largest. */
	deviceRow(d) {
		return h("tr", {class: "soft"}, h("td", {}), h("td", {colspan: "3"}, `device ${d.device}`), h("td", {class: "num"}, bytes(d.peak)),
			h("td", {class: "num"}, d.peak_at === null ? "–" : instant(d.peak_at, fine(this.page.duration_ns))), h("td", {class: "num"}, bytes(d.hidden)),
			h("td", {class: "num"}, bytes(d.end)), h("td", {colspan: "4"}));
	}

	drawTable() {
		const shown = this.hits.size ? this.order.filter((i) => this.hits.has(i)) : this.order;
		const some = this.all ? shown : shown.slice(0, FIRST_ROWS);
		const head = [this.page.processes.some((p) => p.rank === null) ? "Rank or pid" : "Rank", "Host", "Process", "Ended", "Peak", "At", "Hidden", "At the end", "Left", "OOM", "Events", "Lost"];
		replace(this.table, h("table", {class: "lines"}, h("thead", {}, h("tr", {}, head.map((t, k) => h("th", {scope: "col", class: k > 3 ? "num" : null}, t)))),
			h("tbody", {}, some.flatMap((i) => {
				const p = this.page.processes[i];
				const row = h("tr", {class: p.ooms ? "bad" : null},
					h("td", {}, h("button", {class: "link", onclick: () => this.onOpen(i)}, this.name(i))), h("td", {}, visible(p.host, 40)), h("td", {}, String(p.pid)),
					h("td", {}, endOf(p)), h("td", {class: "num"}, bytes(onDevice(p, p.peak))), h("td", {class: "num"}, p.peak_at === null ? "–" : instant(p.peak_at, fine(this.page.duration_ns))),
					h("td", {class: "num"}, bytes(p.hidden)), h("td", {class: "num"}, bytes(onDevice(p, p.end))), h("td", {class: "num"}, p.leaks === null ? "–" : bytes(p.leaks)),
					h("td", {class: "num"}, p.ooms ? h("strong", {class: "oom"}, String(p.ooms)) : "0"), h("td", {class: "num"}, count(p.events)), h("td", {class: "num"}, count(p.lost_events)));
				return p.devices && p.devices.length > 1 ? [row, ...p.devices.map((d) => this.deviceRow(d))] : [row];
			}))),
		shown.length > some.length && h("button", {onclick: () => {
			this.all = true;
			this.drawTable();
		}}, `Show all ${count(shown.length)}`));
	}
}
