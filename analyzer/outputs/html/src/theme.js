/* SPDX-License-Identifier: MIT */
/*
 * Colours that stay apart for the colour-blind (after Okabe and Ito), one set per theme.  Text is AA on its
 * background; areas differ in lightness too, and are separated by lines.
 */
export const LIGHT = {
	layers: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#b5a900"],
	other: "#cdb894", ink: "#1b1f24", soft: "#57606a", grid: "#e3e6ea", paper: "#ffffff", hidden: "#6b4a9c",
	used: "#3b3054", peak: "#0b3d5c", oom: "#b3261e", python: "#a8d1ee", native: "#f5d08f", pythonHot: "#5aa9dd",
	unknown: "#d9dde2", grown: "#f0965a", shrunk: "#78b4e4", hit: "#c51b7d", hitFill: "#ee8fc2", select: "rgba(0,90,156,0.15)", free: "#f1f3f5",
	heat: ["#f3f6f9", "#c6dbef", "#9ecae1", "#6baed6", "#3182bd", "#08519c", "#08306b"],
};
export const DARK = {
	layers: ["#3b9ddb", "#e8a51c", "#1fb58a", "#dd8fba", "#7cc8f2", "#ec7a3c", "#a48bd0", "#cfc44a"],
	other: "#7c6a49", ink: "#e8ebef", soft: "#a9b2bc", grid: "#2d343c", paper: "#15191e", hidden: "#b79be6",
	used: "#d9c9f7", peak: "#bfe1fa", oom: "#ff7b72", python: "#1f5f8f", native: "#805a12", pythonHot: "#2f83c0",
	unknown: "#3a424b", grown: "#9c4a12", shrunk: "#1f5f8f", hit: "#ff8ac6", hitFill: "#8f2a66", select: "rgba(120,190,255,0.20)", free: "#20262d",
	heat: ["#1b222a", "#0d3b66", "#155a92", "#2b7fbd", "#57a5d9", "#93cbee", "#dcf0fc"],
};

export function isDark(choice) {
	return choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}

export function colours(choice) {
	return isDark(choice) ? DARK : LIGHT;
}

const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/* The part 0..1 of the way from one colour to another. */
export function mix(from, to, part) {
	const a = channels(from), b = channels(to);
	return `rgb(${a.map((c, k) => Math.round(c + (b[k] - c) * part)).join(",")})`;
}

/* 0..1 -> a colour between the heat map's, as [r, g, b] */
export function heatScale(palette) {
	const stops = palette.heat.map(channels);
	return (t) => {
		const x = Math.max(0, Math.min(1, t)) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(x));
		return stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * (x - i)));
	};
}
