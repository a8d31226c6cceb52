/* SPDX-License-Identifier: MIT */
/* The time line: areas from bins, device-wide use over them, marks; zoom, hover, pick a moment. */
import uPlot from "uplot";
import {peaksIn} from "./bins.js";
import {h, replace} from "./dom.js";
import {bytes, bytesShort, clock, count, duration, fine, instant, percent, visible} from "./format.js";
import {isBound} from "./series.js";
import {mostFrequent} from "./stacks.js";

const POWERS = Array.from({length: 64}, (_, i) => 2 ** i);
const HEIGHT = 320;
const NEAR = 2; /* pixels */

function hatch(colour) {
	const tile = document.createElement("canvas"), c = tile.getContext("2d");
	tile.width = tile.height = 8;
	c.strokeStyle = colour;
	c.lineWidth = 1.4;
	c.beginPath();
	for (const k of [-8, 0, 8]) {
		c.moveTo(k, 8);
		c.lineTo(k + 8, 0);
	}
	c.stroke();
	return c.createPattern(tile, "repeat");
}

export class Timeline {
	constructor({page, series, stacks, ranges, range, span, state, palette, scope, canTell, onPick}) {
		Object.assign(this, {page, series, stacks, ranges, range, span, state, palette, scope, canTell, onPick});
		this.zooms = [];
		this.cursor = null;
		this.chart = h("div", {class: "chart", tabindex: "0", role: "application", "aria-label":
			"Time line. Arrow keys move, plus and minus zoom, Enter shows the stacks there, Escape zooms out."});
		this.overview = h("div", {class: "overview", "aria-hidden": "true"}); /* keys of the chart do the same */
		this.legend = h("ul", {class: "legend"});
		this.inspector = h("div", {class: "inspector", "aria-live": "polite"});
		this.node = h("div", {class: "timeline"}, h("div", {class: "timeline-main"}, this.overview, this.chart, this.legend), this.inspector);
		this.chart.addEventListener("keydown", (event) => this.key(event));
		this.chart.addEventListener("dblclick", () => this.back());
		new ResizeObserver(() => {
			if (this.plot && Math.abs(this.chart.clientWidth - this.plot.width) > 1)
				this.draw();
		}).observe(this.chart);
	}

	view() {
		const [a, b] = this.span(), from = this.state.number("from") ?? a, to = this.state.number("to") ?? b;
		return to > from ? [from, to] : [a, b];
	}

	/* A line for each top, largest first so that the next covers it; x has one more point, the end of the last bin. */
	draw() {
		const width = Math.max(240, this.chart.clientWidth || 800), [from, to] = this.view();
		const by = this.series.choose(this.scope(), this.state.get("by"));
		const picture = this.series.picture(this.scope(), by, from, to, Math.floor((width - 80) / 1.5));
		this.picture = picture;
		const {grid, tops, total} = picture, n = grid.n, most = (values) => values.reduce((a, b) => Math.max(a, b), 0);
		const card = by === "host" ? null : this.series.card(this.scope()), near = card !== null && card < 4 * most(total.max);
		picture.card = card && {bytes: card, near};
		if (card && picture.used && most(picture.used.max) > card) /* a limit of the process: others do not count in it */
			picture.used = picture.others = null;
		const {used, others} = picture;
		const xs = Float64Array.from({length: n + 1}, (_, i) => grid.start + i * grid.width);
		const column = (values, ok) => {
			const out = new Array(n + 1);
			for (let i = 0; i < n; i++)
				out[i] = ok && !ok[i] ? null : values[i];
			out[n] = out[n - 1];
			return out;
		};
		const p = this.palette(), step = uPlot.paths.stepped({align: 1}), quiet = {points: {show: false}, paths: step};
		const data = [xs], lines = [{}], bands = [];
		if (used) {
			data.push(column(used.max, used.known));
			lines.push({...quiet, stroke: p.used, width: 1.5, fill: hatch(p.hidden)});
		}
		if (others) {
			data.push(column(total.max.map((bytes, i) => bytes + others.max[i]), total.known));
			lines.push({...quiet, stroke: p.paper, width: 0.6, fill: p.other});
		}
		for (const fill of [p.paper, p.peak + "40"]) {
			data.push(column(total.max, total.known));
			lines.push({...quiet, stroke: p.peak, width: 1, fill});
		}
		for (let k = tops.length - 1; k >= 0; k--) {
			data.push(column(tops[k], total.known));
			lines.push({...quiet, stroke: p.paper, width: 0.6, fill: this.colour(k)});
		}
		data.push(column(total.min, total.known));
		lines.push({...quiet, stroke: p.ink, width: 0.8, dash: [2, 3]});
		data.push(column(total.max, total.known));
		lines.push({...quiet, stroke: p.peak, width: 1.2});
		if (near) {
			data.push(new Array(n + 1).fill(card));
			lines.push({...quiet, stroke: p.oom, width: 1.5, dash: [8, 4]});
		}
		this.plot?.destroy();
		this.plot = new uPlot({
			width, height: HEIGHT, legend: {show: false}, pxAlign: 0, padding: [12, 18, 0, 0],
			scales: {x: {time: false, range: () => [from, to]}, y: {range: (u, lo, hi) => [0, (hi || 1) * 1.06]}},
			cursor: {drag: {x: true, y: false, setScale: false}, points: {show: false}, y: false},
			series: lines, bands,
			axes: [{stroke: p.soft, grid: {stroke: p.grid, width: 1}, ticks: {stroke: p.grid}, space: 90,
				incrs: timeSteps(), values: (u, ticks, _, __, incr) => this.ticks(ticks, incr),
				splits: this.state.get("axis") === "step" && this.steps() ? () => this.stepSplits(from, to, width) : undefined},
			{stroke: p.soft, grid: {stroke: p.grid, width: 1}, ticks: {stroke: p.grid}, size: 72, incrs: POWERS,
				values: (u, ticks) => ticks.map(bytesShort)}],
			hooks: {
				draw: [(u) => this.drawMarks(u)],
				setCursor: [(u) => this.hover(u)],
				setSelect: [(u) => this.select(u)],
			},
		}, data, this.chart);
		this.plot.over.addEventListener("click", (event) => this.click(event));
		this.drawOverview(width, by, from, to);
		this.drawLegend();
		if (this.cursor === null)
			this.inspect(null);
	}

	/* The whole run in one small line, with the range in view marked: to move it, or to choose another. */
	drawOverview(width, by, from, to) {
		const [a, b] = this.span(), all = from <= a && to >= b;
		this.small?.destroy();
		this.small = null;
		if (all)
			return;
		const {grid, total} = this.series.picture(this.scope(), by, a, b, Math.floor((width - 80) / 1.5)), p = this.palette();
		const xs = Float64Array.from({length: grid.n}, (_, i) => grid.start + i * grid.width);
		this.small = new uPlot({width, height: 44, legend: {show: false}, pxAlign: 0, padding: [4, 18, 0, 72],
			scales: {x: {time: false, range: () => [a, b]}, y: {range: (u, lo, hi) => [0, (hi || 1) * 1.06]}},
			cursor: {drag: {x: true, y: false, setScale: false}, points: {show: false}, y: false}, axes: [{show: false}, {show: false}],
			series: [{}, {points: {show: false}, paths: uPlot.paths.stepped({align: 1}), stroke: p.soft, width: 1, fill: p.grid}],
			hooks: {ready: [(u) => {
				const at = (t) => u.valToPos(Math.max(a, Math.min(b, t)), "x"); /* the URL may name a range outside the run */
				u.setSelect({left: at(from), top: 0, width: Math.max(2, at(to) - at(from)), height: u.over.clientHeight}, false);
				u.hooks.setSelect = [(v) => this.select(v)]; /* only selections by the reader count */
			}]}}, [xs, Array.from(total.max, (value, i) => (total.known[i] ? value : null))], this.overview);
	}

	colour(k) {
		const p = this.palette(), {colour = k + 1} = this.picture.layers[k];
		return colour ? p.layers[(colour - 1) % p.layers.length] : p.unknown;
	}

	drawLegend() {
		const {layers, seen, card, used, usedName, others} = this.picture, q = this.state.get("q").toLowerCase();
		const swatch = (style) => h("span", {class: "swatch", style});
		replace(this.legend,
			layers.map((layer, k) => h("li", {class: q && layer.name.toLowerCase().includes(q) ? "hit" : null},
				swatch({background: this.colour(k)}), visible(layer.name, 60))).reverse(),
			h("li", {}, swatch({background: this.palette().peak + "55"}), seen ? `more in between: the parts are of ${count(seen)} moments` : "short peaks"),
			card && h("li", {class: "card-size"}, `the card, or its limit: ${bytes(card.bytes)}${card.near ? "" : ", above this chart"}`),
			others && h("li", {}, swatch({background: this.palette().other}), "other recorded processes"),
			used && h("li", {}, h("span", {class: "swatch hatched"}), `${usedName}${this.picture.overlaid === "host" ? "" : "; the hatched band is hidden memory"}`));
	}

	/* ---- axis */

	ticks(ticks, incr) {
		const axis = this.state.get("axis");
		if (axis === "step" && this.steps())
			return ticks.map((t) => String(this.stepAt(t) ?? ""));
		return ticks.map((t) => (axis === "clock" ? clock(this.page.t0, t, incr) : instant(t, incr)));
	}

	/* The steps of the rank in view, or of the first that has some. */
	steps() {
		const {process} = this.scope();
		return this.page.steps.find((s) => s.at.length && (process === null || s.process === process)) || null;
	}

	stepAt(t) {
		const steps = this.steps();
		let low = 0, high = steps ? steps.at.length : 0;
		while (low < high) {
			const mid = (low + high) >> 1;
			if (steps.at[mid] <= t + 1)
				low = mid + 1;
			else
				high = mid;
		}
		return low ? steps.number[low - 1] : null;
	}

	stepSplits(from, to, width) {
		const at = Array.from(this.steps().at).filter((t) => t >= from && t <= to);
		const every = Math.max(1, Math.ceil(at.length / Math.max(2, width / 70)));
		return at.filter((_, i) => i % every === 0);
	}

	say(t) {
		const axis = this.state.get("axis"), step = this.stepAt(t), width = this.picture ? this.picture.grid.width : 1e9;
		const text = axis === "clock" ? clock(this.page.t0, t, width) : instant(t, width);
		return step === null ? text : `${text}, step ${step}`;
	}

	/* ---- marks */

	marks() {
		const {process, device} = this.scope();
		return this.page.marks.filter((m) => (process === null || m.process === null || m.process === process) &&
			(device === null || m.device === null || m.device === device));
	}

	drawMarks(u) {
		const c = u.ctx, p = this.palette(), {left, top, width, height} = u.bbox, r = devicePixelRatio;
		const x = (t) => u.valToPos(t, "x", true);
		c.save();
		c.beginPath();
		c.rect(left - 8 * r, 0, width + 16 * r, top + height + 1);
		c.clip();
		const steps = this.steps();
		if (steps) {
			c.fillStyle = p.soft;
			let last = -Infinity;
			for (const t of steps.at) {
				const at = x(t);
				if (at - last >= 3 * r && at >= left && at <= left + width) {
					c.fillRect(at, top + height - 5 * r, r, 5 * r);
					last = at;
				}
			}
		}
		for (const mark of this.marks()) {
			const at = x(mark.at);
			if (at < left - 1 || at > left + width + 1)
				continue;
			const oom = mark.kind === "oom", size = 5 * r;
			c.strokeStyle = c.fillStyle = oom ? p.oom : p.soft;
			c.lineWidth = oom ? 1.5 * r : r;
			c.setLineDash(oom ? [] : [2 * r, 3 * r]);
			c.beginPath();
			c.moveTo(at, top);
			c.lineTo(at, top + height);
			c.stroke();
			c.setLineDash([]);
			c.beginPath();
			if (oom) {
				c.moveTo(at - size, top - size * 1.6);
				c.lineTo(at + size, top - size * 1.6);
				c.lineTo(at, top);
			} else {
				c.arc(at, top - size * 0.7, size * 0.6, 0, 7);
			}
			c.fill();
		}
		const picked = this.state.number("at");
		if (picked !== null) {
			c.strokeStyle = p.hit;
			c.lineWidth = 2 * r;
			c.beginPath();
			c.moveTo(x(picked), top);
			c.lineTo(x(picked), top + height);
			c.stroke();
		}
		this.drawInstants(c, u, p, r);
		this.drawHits(c, u, p, r);
		c.restore();
	}

	/* Where a bin is wide, its peak is a line at its own time. */
	drawInstants(c, u, p, r) {
		const {grid, totalLines} = this.picture;
		if (totalLines.length !== 1 || (u.valToPos(grid.start + grid.width, "x", true) - u.valToPos(grid.start, "x", true)) < 8 * r)
			return;
		const line = totalLines[0].pyramid.levels[0];
		c.strokeStyle = p.peak;
		c.lineWidth = 1.5 * r;
		c.beginPath();
		for (let i = 0; i < line.max.length; i++) {
			const at = u.valToPos(line.start + (i + line.at[i] / 256) * line.width, "x", true);
			if (at < u.bbox.left || at > u.bbox.left + u.bbox.width || line.max[i] - line.mean[i] < line.max[i] * 0.01)
				continue;
			c.moveTo(at, u.valToPos(line.mean[i], "y", true));
			c.lineTo(at, u.valToPos(line.max[i], "y", true));
		}
		c.stroke();
	}

	/* Search: bins whose peak was made by a matching stack get a tick at the top. */
	drawHits(c, u, p, r) {
		const hit = this.stacks.matching(this.state.get("q"));
		this.hitBins = 0;
		if (!hit)
			return;
		const {grid, stackLines} = this.picture;
		c.fillStyle = p.hit;
		for (const line of stackLines) {
			const level = line.pyramid.level(grid.width);
			for (let i = 0; i < level.stack.length; i++) {
				const left = u.valToPos(level.start + i * level.width, "x", true);
				const right = u.valToPos(level.start + (i + 1) * level.width, "x", true);
				if (hit[level.stack[i]] && right > u.bbox.left && left < u.bbox.left + u.bbox.width) {
					c.fillRect(left, u.bbox.top, Math.max(2 * r, right - left), 5 * r);
					this.hitBins++;
				}
			}
		}
	}

	/* ---- hover */

	hover(u) {
		const {left} = u.cursor;
		if (left === undefined || left < 0)
			return;
		const {grid, total} = this.picture, cell = (x) => Math.floor((u.posToVal(x, "x") - grid.start) / grid.width);
		let best = cell(left);
		for (let i = cell(left - NEAR); i <= cell(left + NEAR); i++) /* a spike of one pixel is hard to hit */
			if (total.max[i] > (total.max[best] || 0) * 1.05)
				best = i;
		this.point(best);
	}

	point(cell) {
		const {grid} = this.picture;
		this.cursor = Math.max(0, Math.min(grid.n - 1, cell));
		this.inspect(this.cursor);
	}

	/* What a cell of the picture says: also what tests read. */
	facts(cell) {
		const {grid, layers, bins, total, used, others, hidden, totalLines, stackLines} = this.picture;
		const from = grid.start + cell * grid.width, to = from + grid.width;
		const stacks = stackLines.flatMap((line) => peaksIn(line.pyramid, from, to).stacks);
		const highest = totalLines.map((line) => peaksIn(line.pyramid, from, to)).reduce((a, b) => (b.max > (a?.max ?? -1) ? b : a), null);
		return {from, to, total: {min: total.min[cell], mean: total.mean[cell], max: total.max[cell]},
			used: used && used.known[cell] ? used.max[cell] : null,
			others: others && others.known[cell] ? others.max[cell] : 0,
			hidden: hidden && hidden.known[cell] ? hidden.max[cell] : null,
			layers: layers.map((layer, k) => ({k, name: layer.name, word: layer.uses ? "about " : isBound(layer) ? "at most " : "", max: bins[k].max[cell]})),
			stacks, common: this.stacks.common(stacks), frequent: mostFrequent(stacks), peak: highest};
	}

	/* The figures of the whole view, while nothing is pointed at. */
	summarize() {
		if (!this.picture)
			return;
		const [from, to] = this.view(), range = this.range(), scope = this.scope();
		const {most, at, mean, layers} = this.series.figures(scope, this.series.choose(scope, this.state.get("by")), from, to);
		const peak = this.page.processes.flatMap((p) => p.devices || []).find((d) => d.peak === most && d.peak_at !== null && d.peak_at >= from && d.peak_at <= to);
		const when = peak ? `at ${duration(peak.peak_at)}` : `near ${instant(at, fine(to - from))}`; /* the terminal's, of several moments with as much */
		const told = (!range || this.ranges.canTell(scope)) && this.ranges.told(scope).length ? this.ranges.rows(scope, range).rows : null;
		const sum = (key) => told.reduce((a, row) => a + row[key], 0);
		const row = (name, ...values) => h("tr", {}, h("td", {}, name), values.map((value) => h("td", {class: "num"}, value)));
		replace(this.inspector, h("p", {class: "when"}, range ? "In view" : "The whole run", h("span", {class: "soft"}, ` ${instant(from, fine(to - from))} to ${instant(to, fine(to - from))}`)),
			most !== null && [h("p", {class: "big"}, bytes(most), h("span", {class: "soft"}, ` ${this.page.window ? "reserved " : ""}at most, ${when}`)),
				h("p", {class: "soft"}, `mean ${bytes(mean)}`)],
			(range || !this.picture.seen) && /* of the whole run the answer has the parts */
				h("table", {class: "mini"}, h("tbody", {}, layers.slice(0, 6).map((l) => row([h("span", {class: "swatch", style: {background: this.colour(l.k)}}), visible(l.name, 40)], `${this.picture.seen ? "then" : "at most"} ${bytes(l.max)}`)))),
			told && [h("h4", {}, range ? "Blocks born in it" : "Blocks"), h("table", {class: "mini"}, h("tbody", {}, row("asked for", count(sum("born")), bytes(sum("bornBytes"))),
				row(range ? "still held at its end" : "kept to the end", count(sum("kept")), bytes(sum("keptBytes"))),
				row("freed before", count(sum("born") - sum("kept")), bytes(sum("bornBytes") - sum("keptBytes")))))]);
	}

	inspect(cell) {
		if (cell === null || !this.picture) {
			this.summarize();
			return;
		}
		const f = this.facts(cell), rows = f.layers.filter((l) => l.max > 0).sort((a, b) => b.max - a.max).slice(0, 8);
		const marks = this.marks().filter((m) => m.at >= f.from - 2 * slack(f) && m.at < f.to + 2 * slack(f)).slice(0, 4);
		const frames = (path, most) => h("ol", {class: "frames"}, path.length > most && h("li", {class: "soft"}, `${path.length - most} frames around them`),
			path.slice(-most).map((frame) => h("li", {class: this.stacks.isPython(frame) ? "py" : "nat"}, this.stacks.name(frame))));
		const frequent = f.frequent.node ? this.stacks.path(f.frequent.node) : [];
		const rest = frequent.slice(Math.min(f.common.length, frequent.length));
		replace(this.inspector,
			h("p", {class: "when"}, this.say(f.from), h("span", {class: "soft"}, ` + ${duration(f.to - f.from)}`)),
			marks.map((m) => h("p", {class: m.kind === "oom" ? "oom" : "soft"}, `${instant(m.at, f.to - f.from)}: ${visible(m.text, 120)}`)),
			h("p", {class: "big"}, bytes(f.total.max), h("span", {class: "soft"}, ` at most · mean ${bytes(f.total.mean)} · least ${bytes(f.total.min)}`)),
			f.used !== null && h("p", {class: "soft"}, `${this.picture.usedName} ${bytes(f.used)}`,
				this.picture.overlaid === "host" ? null : f.hidden !== null ? ` when sampled, hidden ${bytes(f.hidden)}` :
					f.used < f.total.max + f.others ? " when sampled" : `, hidden ${bytes(f.used - f.total.max - f.others)}`,
				f.others > 0 && `, of other recorded processes ${bytes(f.others)}`),
			h("table", {class: "mini"}, h("tbody", {}, rows.map((l) => h("tr", {},
				h("td", {}, h("span", {class: "swatch", style: {background: this.colour(l.k)}}), visible(l.name, 40)),
				h("td", {class: "num"}, l.word + bytes(l.max)))))),
			f.common.length ? [h("h4", {}, f.stacks.length > 1 ? "Common to the peaks here" : "Made the peak here"), frames(f.common, 8)] :
				this.page.source === "trace" && h("p", {class: "soft"}, f.stacks.length ? "The peaks here have no frame in common." : "No stack: memory was only given back here."),
			rest.length > 0 && f.frequent.share < 1 && [h("h4", {}, `Most frequent below, ${percent(f.frequent.share, 1)} of ${f.stacks.length} peaks`), frames(rest, 8)]);
	}

	/* ---- zoom */

	select(u) {
		const {left, width} = u.select;
		if (width < 4)
			return;
		this.justDragged = u === this.plot;
		this.zoom(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
	}

	zoom(from, to) {
		const [a, b] = this.span(), least = 64;
		from = Math.max(a, Math.min(from, b - least));
		to = Math.min(b, Math.max(to, from + least));
		this.zooms.push(this.view());
		this.show(from, to);
	}

	/* Sets the range in view.  Stacks and places follow: for a part of the run they show what was born in it. */
	show(from, to) {
		const [a, b] = this.span(), flame = this.state.get("flame");
		this.cursor = null;
		this.state.set(from <= a && to >= b ? {from: "", to: "", flame: flame === "range" ? "moment" : flame} :
			{from: Math.floor(from), to: Math.ceil(to), flame: this.canTell() ? "range" : flame});
	}

	back() {
		this.show(...(this.zooms.pop() || this.span()));
	}

	click(event) {
		if (this.justDragged) {
			this.justDragged = false;
			return;
		}
		const box = this.plot.over.getBoundingClientRect();
		this.onPick(this.plot.posToVal(event.clientX - box.left, "x"));
	}

	key(event) {
		const {grid} = this.picture, [from, to] = this.view(), middle = this.cursor === null ? (from + to) / 2 :
			grid.start + (this.cursor + 0.5) * grid.width;
		const move = (d) => {
			const first = Math.max(0, Math.floor((from - grid.start) / grid.width));
			this.point((this.cursor ?? first) + d);
			this.plot.setCursor({left: this.plot.valToPos(grid.start + (this.cursor + 0.5) * grid.width, "x"), top: 10}, false);
		};
		const half = (to - from) / 4;
		const keys = {
			ArrowRight: () => move(event.shiftKey ? 10 : 1), ArrowLeft: () => move(event.shiftKey ? -10 : -1),
			"+": () => this.zoom(middle - half, middle + half), "=": () => this.zoom(middle - half, middle + half),
			"-": () => this.zoom(middle - half * 4, middle + half * 4), Home: () => this.zoom(...this.span()),
			Escape: () => this.back(), Enter: () => this.onPick(middle),
		};
		if (keys[event.key]) {
			event.preventDefault();
			keys[event.key]();
		}
	}
}

/* A mark is pointed at from a few pixels beside it. */
function slack(f) {
	return f.to - f.from;
}

/* Steps of an axis of time, in ns: 1, 2, 5 x 10^k below a second, then what clocks have. */
function timeSteps() {
	const out = [];
	for (let e = 0; e < 9; e++)
		out.push(10 ** e, 2 * 10 ** e, 5 * 10 ** e);
	for (const s of [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 604800])
		out.push(s * 1e9);
	return out;
}
