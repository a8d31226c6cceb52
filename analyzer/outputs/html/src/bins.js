/* SPDX-License-Identifier: MIT */
/*
 * Lines over time are bins of equal width that keep minimum, mean and maximum.  A pyramid halves the number of
 * bins per level; a picture takes the coarsest level that is still finer than its own columns.  Whatever is drawn,
 * the largest maximum in view is in it.
 */

/* {start, width, min, max, mean, stack}: one level; times are ns since the page's t0 */
export function coarser(line) {
	const odd = line.offset & 1, n = (line.max.length + odd + 1) >> 1;
	const out = {start: line.start - odd * line.width, width: line.width * 2, offset: line.offset >> 1, last: line.last,
		min: new Float64Array(n), max: new Float64Array(n), mean: new Float64Array(n), stack: new Uint32Array(n)};
	for (let i = 0; i < n; i++) {
		const a = i * 2 - odd, b = a + 1, left = a >= 0, right = b < line.max.length;
		const l = left ? a : b, r = right ? b : a, peak = line.max[r] > line.max[l] ? r : l;
		out.min[i] = Math.min(line.min[l], line.min[r]);
		out.max[i] = line.max[peak];
		out.stack[i] = line.stack[peak];
		out.mean[i] = (line.mean[l] + line.mean[r]) / 2;
	}
	return out;
}

export class Pyramid {
	/* offset: number of the first bin on the line's own grid, so that levels of several lines stay aligned */
	constructor(line) {
		this.levels = [{offset: 0, ...line}];
	}

	/* The coarsest level whose bins are not wider than `width` ns. */
	level(width) {
		let at = this.levels[0];
		for (let i = 0; at.width * 2 <= width && at.max.length > 1; ) {
			if (++i === this.levels.length)
				this.levels.push(coarser(at));
			at = this.levels[i];
		}
		return at;
	}
}

/* A grid to draw on: bins [start + i * width), a power of two of `unit` wide, aligned to `origin`. */
export function makeGrid(origin, unit, from, to, most) {
	let width = unit;
	while ((to - from) / width > most)
		width *= 2;
	const first = Math.floor((from - origin) / width), last = Math.max(first, Math.ceil((to - origin) / width) - 1);
	return {start: origin + first * width, width, n: last - first + 1};
}

export function emptyBins(n) {
	return {min: new Float64Array(n), max: new Float64Array(n), mean: new Float64Array(n), known: new Uint8Array(n)};
}

/* One line on a grid: extremes of every bin that touches a cell, mean weighted by what it covers of the cell. */
export function onGrid(pyramid, grid) {
	const out = emptyBins(grid.n), level = pyramid.level(grid.width), n = level.max.length;
	for (let i = 0; i < grid.n; i++) {
		const from = grid.start + i * grid.width, to = from + grid.width;
		const a = Math.max(0, Math.floor((from - level.start) / level.width + 1e-9));
		const b = Math.min(n, Math.ceil((to - level.start) / level.width - 1e-9));
		let area = 0, covered = 0, max = -Infinity, min = Infinity;
		for (let j = a; j < b; j++) {
			const left = level.start + j * level.width;
			const overlap = Math.min(left + level.width, to) - Math.max(left, from);
			if (overlap <= 0)
				continue;
			if (level.max[j] > max)
				max = level.max[j];
			if (level.min[j] < min)
				min = level.min[j];
			area += level.mean[j] * overlap;
			covered += overlap;
		}
		if (covered > 0) {
			out.max[i] = max;
			out.min[i] = covered < grid.width * 0.999 ? Math.min(min, level.mean[a] === undefined ? 0 : min) : min;
			out.mean[i] = area / covered;
			out.known[i] = 1;
		}
	}
	return out;
}

/* The bins behind one cell, finest first: their peak stacks, for the hover. */
export function peaksIn(pyramid, from, to) {
	const line = pyramid.levels[0], stacks = [];
	const a = Math.max(0, Math.floor((from - line.start) / line.width + 1e-9));
	const b = Math.min(line.max.length, Math.ceil((to - line.start) / line.width - 1e-9));
	let peak = -1;
	for (let j = a; j < b; j++) {
		if (line.stack[j])
			stacks.push(line.stack[j]);
		if (peak < 0 || line.max[j] > line.max[peak])
			peak = j;
	}
	return {stacks, bins: Math.max(0, b - a), peakStack: peak < 0 ? 0 : line.stack[peak],
		peakAt: peak < 0 ? null : line.start + (peak + (line.at ? line.at[peak] / 256 : 0.5)) * line.width,
		max: peak < 0 ? null : line.max[peak]};
}

/* Lines of several ranks or devices as one: means add up exactly, extremes are bounds. */
export function sum(parts, n) {
	if (parts.length === 1)
		return parts[0];
	const out = emptyBins(n);
	for (const part of parts)
		for (let i = 0; i < n; i++)
			if (part.known[i]) {
				out.min[i] += part.min[i];
				out.max[i] += part.max[i];
				out.mean[i] += part.mean[i];
				out.known[i] = 1;
			}
	return out;
}

/* a - b where both are known, never below 0. */
export function difference(a, b) {
	const n = a.max.length, out = emptyBins(n);
	for (let i = 0; i < n; i++) {
		out.mean[i] = Math.max(0, a.mean[i] - b.mean[i]);
		out.max[i] = Math.max(0, a.max[i] - b.min[i]);
		out.min[i] = Math.max(0, a.min[i] - b.max[i]);
		out.known[i] = a.known[i];
	}
	return out;
}

/* Layers on top of each other, first at the bottom: tops[k][i]. */
export function stackUp(layers, n) {
	const tops = layers.map(() => new Float64Array(n));
	for (let i = 0; i < n; i++)
		layers.reduce((at, layer, k) => (tops[k][i] = at + layer.mean[i]), 0);
	return tops;
}
