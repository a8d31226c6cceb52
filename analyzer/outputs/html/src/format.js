/* SPDX-License-Identifier: MIT */
/* Numbers as people read them.  Unknown (null, undefined, NaN) is a dash, never 0. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
export const UNKNOWN = "–";

export function known(value) {
	return value !== null && value !== undefined && !Number.isNaN(value);
}

/* Rounds as printf does: between two equally near numbers to the even one, so 1.125 is 1.12. */
function fixed(n, places) {
	const scale = 10 ** places, below = Math.floor(n * scale);
	return (n * scale - below === 0.5 && below % 2 === 0 ? below / scale : n).toFixed(places);
}

/* As sl_format_size of the terminal. */
export function bytes(value, digits) {
	if (!known(value))
		return UNKNOWN;
	let n = Math.abs(value), unit = 0;
	while (n >= (unit === 0 ? 1024 : 999.5) && unit < UNITS.length - 1) {
		n /= 1024;
		unit++;
	}
	const places = digits ?? (unit === 0 ? 0 : n < 9.995 ? 2 : n < 99.95 ? 1 : 0);
	return `${value < 0 ? "-" : ""}${fixed(n, places)} ${UNITS[unit]}`;
}

/* On an axis: whole numbers without decimals. */
export function bytesShort(value) {
	return bytes(value).replace(/\.0+(?= )/, "").replace(/(\.\d*[1-9])0+(?= )/, "$1");
}

export function count(value) {
	return known(value) ? Math.round(value).toLocaleString("en-US").replace(/,/g, "\u202f") : UNKNOWN;
}

export function percent(part, whole) {
	if (!known(part) || !whole)
		return UNKNOWN;
	const p = (part / whole) * 100;
	return `${p < 10 ? p.toFixed(1) : p.toFixed(0)}%`;
}

const EVENT = 1000; /* ns; where a snapshot's events have no times, each counts as so much */
let timeless = false;

/* Instants and spans are numbers of events from here on, or times. */
export function countEvents(on) {
	timeless = on;
}

/* A span of nanoseconds. */
export function duration(ns) {
	if (!known(ns))
		return UNKNOWN;
	if (timeless)
		return `${count(ns / EVENT)} events`;
	const s = ns / 1e9;
	if (Math.abs(s) < 1e-6)
		return `${ns.toFixed(0)} ns`;
	if (Math.abs(s) < 1e-3)
		return `${(s * 1e6).toPrecision(3)} µs`;
	if (Math.abs(s) < 1)
		return `${(s * 1e3).toPrecision(3)} ms`;
	if (Math.abs(s) < 60)
		return `${s < 10 ? s.toFixed(2) : s.toFixed(1)} s`;
	const whole = Math.round(s), h = Math.floor(whole / 3600), m = Math.floor((whole % 3600) / 60);
	return h ? `${h} h ${String(m).padStart(2, "0")} min` : `${m} min ${String(whole % 60).padStart(2, "0")} s`;
}

/* An instant with as many digits as tell it from its neighbours on an axis, `step_ns` away. */
export function instant(ns, step_ns) {
	const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10((step_ns || 1e9) / 1e9))));
	if (timeless)
		return `event ${count(ns / EVENT)}`;
	const s = ns / 1e9;
	if (s < 60 && ns >= 0)
		return `${s.toFixed(digits)} s`;
	const sign = s < 0 ? "-" : "", a = Math.abs(s), h = Math.floor(a / 3600), m = Math.floor((a % 3600) / 60);
	const rest = (a % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
	return h ? `${sign}${h}:${String(m).padStart(2, "0")}:${rest}` : `${sign}${m}:${rest}`;
}

/* How finely to tell instants of a run: a thousandth of it, at most 100 ms. */
export function fine(duration_ns) {
	return Math.min(1e8, Math.max(1, duration_ns / 1000));
}

/* Wall clock (UTC) of t0 + ns, both exact; t0 a BigInt of Unix nanoseconds. */
export function clock(t0, ns, step_ns) {
	const unix = t0 + BigInt(Math.round(ns));
	const ms = Number(unix / 1000000n), rest = unix % 1000000000n;
	const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10((step_ns || 1e9) / 1e9))));
	const date = new Date(ms).toISOString();
	const fraction = digits ? "." + String(rest).padStart(9, "0").slice(0, digits) : "";
	return date.slice(11, 19) + fraction;
}

export function date(t0) {
	return new Date(Number(t0 / 1000000n)).toISOString().slice(0, 19).replace("T", " ") + " UTC";
}

/* Text of a trace, made visible: control characters and marks that reorder text become their code points. */
export function visible(text, max = 300) {
	let out = String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
		(c) => `<${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`);
	if (out.length > max)
		out = out.slice(0, max - 1) + "…";
	return out;
}

/* Begins with a capital, unless it begins with a place, train.py:88, which is a name. */
export function sentence(text, max = 300) {
	return visible(/^[^ ]*[.:]/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1), max);
}

export function basename(path) {
	return path.slice(path.lastIndexOf("/") + 1);
}
