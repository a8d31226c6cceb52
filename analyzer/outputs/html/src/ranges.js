/* SPDX-License-Identifier: MIT */
/*
 * What became of blocks in a stretch of time, by place.  The page keeps windows of equal width: how much each place asked for in each, and
 * which of it ended in a later one (doc/report-page.md).  So of any stretch of whole windows every figure is exact.
 */
export const LIVES = 255;
export const CLASSES = 12;

/* The most that a block of a class of sizes has; the last has no end. */
export const classMost = (k) => (k + 1 < CLASSES ? 512 * 4 ** k : Infinity);

/* The stretch of whole windows nearest to a range of time: numbers [first, end), and its instants. */
export function nearest(stays, from, to) {
	const at = (t) => Math.max(0, Math.min(stays.windows, Math.round((t - stays.begin) / stays.width)));
	let first = at(from), end = at(to);
	if (end <= first) { /* narrower than a window: the one it is in */
		first = Math.max(0, Math.min(stays.windows - 1, Math.floor(((from + to) / 2 - stays.begin) / stays.width)));
		end = first + 1;
	}
	return {first, end, from: stays.begin + first * stays.width, to: stays.begin + end * stays.width};
}

const blank = (rows) => ({born: new Float64Array(rows), bornBytes: new Float64Array(rows), kept: new Float64Array(rows), keptBytes: new Float64Array(rows)});

/* By place of one process: what was born in windows [first, end), what of it still lived at their end, and both by class of sizes. */
export function between(stays, places, first, end, allowed = () => true) {
	const out = {...blank(places), bornSizes: new Float64Array(CLASSES), keptSizes: new Float64Array(CLASSES)};
	for (let i = 0; i < stays.place.length; i++) {
		const born = stays.born[i], ended = stays.ended[i], place = stays.place[i];
		if (born < first || born >= end || !allowed(place))
			continue;
		const sign = born === ended ? 1 : 0, gone = !sign && ended < end;
		if (sign) { /* all births of the window */
			out.born[place] += stays.blocks[i];
			out.bornBytes[place] += stays.bytes[i];
			out.bornSizes[stays.size_class[i]] += stays.blocks[i];
		} else if (!gone) {
			out.kept[place] += stays.blocks[i];
			out.keptBytes[place] += stays.bytes[i];
			out.keptSizes[stays.size_class[i]] += stays.blocks[i];
		}
	}
	return out;
}

const add = (to, from) => from.forEach((value, i) => (to[i] += value));

export class Ranges {
	constructor(page) {
		this.page = page;
		this.of = page.places ?? [];
		this.last = null;
	}

	/* The processes in view whose places are known. */
	told(scope) {
		return this.of.filter((p) => scope.process === null || p.process === scope.process);
	}

	canTell(scope) {
		const told = this.told(scope);
		return told.length > 0 && told.every((p) => p.stays);
	}

	/*
	 * Rows of places in view over a stretch of time (null: the whole run), and the sums.  Rows of one stack and purpose in several
	 * processes are one.  Several views ask, so the last answer is kept.
	 */
	rows(scope, range) {
		const key = JSON.stringify([scope, range]);
		if (this.last?.key === key)
			return this.last;
		const byKey = new Map(), sum = {bornSizes: new Float64Array(CLASSES), keptSizes: new Float64Array(CLASSES)};
		let stretch = null;
		for (const p of this.told(scope)) {
			const n = p.stack.length, shown = (i) => scope.device === null || p.device[i] === scope.device;
			const near = p.stays && nearest(p.stays, ...(range ?? [-Infinity, Infinity]));
			const figures = near ? between(p.stays, n, near.first, near.end, shown) : range ? null :
				{born: p.made, bornBytes: p.made_bytes, kept: p.live, keptBytes: p.live_bytes};
			if (!figures)
				continue;
			if (near) {
				add(sum.bornSizes, figures.bornSizes);
				add(sum.keptSizes, figures.keptSizes);
				stretch = {from: Math.min(near.from, stretch?.from ?? Infinity), to: Math.max(near.to, stretch?.to ?? -Infinity)};
			}
			for (let i = 0; i < n; i++)
				if (shown(i))
					this.join(byKey, p, i, figures);
		}
		this.last = {key, rows: [...byKey.values()], stretch, ...sum};
		return this.last;
	}

	join(byKey, p, i, figures) {
		const key = p.stack[i] * 16 + p.role[i];
		let row = byKey.get(key);
		if (!row)
			byKey.set(key, row = {stack: p.stack[i], name: this.page.strings[p.name[i]], role: p.role[i], born: 0, bornBytes: 0, kept: 0, keptBytes: 0,
				peak: 0, made: 0, temporary: 0, ended: 0, ended_ns: 0, whole: true});
		row.born += figures.born[i];
		row.bornBytes += figures.bornBytes[i];
		row.kept += figures.kept[i];
		row.keptBytes += figures.keptBytes[i];
		row.peak += p.peak_bytes[i];
		row.made += p.made[i];
		row.temporary += p.temporary[i];
		row.ended += p.made[i] - p.live[i];
		row.ended_ns += p.ended_ns[i];
		row.whole &&= p.whole;
	}
}
