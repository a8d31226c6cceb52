/* SPDX-License-Identifier: MIT */
/* What is looked at, as the URL's fragment: a view is shared by sending the file and the address. */

export const DEFAULTS = {by: "", axis: "since", rank: "", device: "", from: "", to: "", at: "",
	flame: "moment", form: "icicle", value: "bytes", inverted: "", frames: "", width: "larger", changed: "", q: "", order: "outliers", map: "0", fit: "0", with: "0", theme: ""};

/* Moments are nanoseconds in the page, and in an address seconds, as `--at` has them. */
const TIMES = ["at", "from", "to"];

export const seconds = (ns) => String(Number(ns) / 1e9);

export function parse(fragment) {
	const state = {...DEFAULTS};
	for (const [key, value] of new URLSearchParams(fragment.replace(/^#/, "")))
		if (Object.hasOwn(DEFAULTS, key))
			state[key] = TIMES.includes(key) && value !== "" && !Number.isNaN(Number(value)) ? String(Math.round(Number(value) * 1e9)) : value;
	return state;
}

export function format(state) {
	const params = new URLSearchParams();
	for (const key of Object.keys(DEFAULTS))
		if (state[key] !== undefined && String(state[key]) !== DEFAULTS[key])
			params.set(key, TIMES.includes(key) ? seconds(state[key]) : state[key]);
	const text = params.toString();
	return text ? "#" + text : "";
}

/* The page of the run whose report this is. */
export const runOf = ({pathname}) => pathname.replace(/\/report$/, "");

/* An address of the server's interface, with its origin: if the page's address has a name and password in it, browsers refuse a relative one. */
export const interfaceOf = ({origin}, path) => origin + "/api/v1" + path;

/* Where a stormlog-server has the data of its page at this address, or only the lines of a part of the run. */
export function dataOf(location, from, to) {
	const {pathname, search} = location;
	if (!pathname.endsWith("/report"))
		return interfaceOf(location, pathname + search);
	return interfaceOf(location, pathname.replace(/report$/, "page") + (to > from ? `?from=${Math.max(0, Math.floor(from))}&to=${Math.ceil(to)}` : ""));
}

/* The state of the page: views subscribe, and are told which keys changed. */
export class State {
	constructor(fragment, write) {
		this.value = parse(fragment);
		this.write = write;
		this.views = [];
	}

	get(key) {
		return this.value[key];
	}

	number(key) {
		return this.value[key] === "" || Number.isNaN(Number(this.value[key])) ? null : Number(this.value[key]);
	}

	on(keys, view) {
		this.views.push({keys, view});
	}

	set(patch) {
		const changed = Object.keys(patch).filter((key) => String(this.value[key]) !== String(patch[key]));
		if (!changed.length)
			return;
		for (const key of changed)
			this.value[key] = String(patch[key]);
		this.write(format(this.value));
		for (const {keys, view} of this.views)
			if (keys.some((key) => changed.includes(key)))
				view(changed);
	}

	reset(fragment) {
		this.set(parse(fragment));
	}
}
