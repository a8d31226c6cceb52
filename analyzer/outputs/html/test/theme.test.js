/* SPDX-License-Identifier: MIT */
import assert from "node:assert/strict";
import {test} from "node:test";
import {DARK, LIGHT, mix} from "../src/theme.js";

const rgb = (hex) => (hex.startsWith("#") ? [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) : hex.match(/\d+/g).map(Number));
const linear = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
const luminance = (hex) => rgb(hex).map(linear).reduce((a, c, k) => a + c * [0.2126, 0.7152, 0.0722][k], 0);
const contrast = (a, b) => (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);

/* What people with two kinds of cones see: Vienot, Brettel and Mollon (1999); the rows of a matrix on linear RGB. */
const SIGHT = {
	normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
	protan: [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
	deutan: [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
};
function lab(hex, sight) {
	const c = rgb(hex).map(linear), [r, g, b] = SIGHT[sight].map((row) => Math.max(0, row.reduce((a, v, k) => a + v * c[k], 0)));
	const f = (t) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
	const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505), y = f(0.2126 * r + 0.7152 * g + 0.0722 * b), z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
	return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}
const distance = (a, b, sight) => Math.hypot(...lab(a, sight).map((v, k) => v - lab(b, sight)[k]));

for (const [name, p] of [["light", LIGHT], ["dark", DARK]]) {
	test(`${name}: text on every frame of a graph has AA contrast`, () => {
		const fills = [p.python, p.native, p.unknown, p.hitFill];
		for (let part = 0; part <= 1; part += 0.1)
			fills.push(mix(p.unknown, p.grown, part), mix(p.unknown, p.shrunk, part));
		for (const fill of fills)
			assert.ok(contrast(p.ink, fill) >= 4.5, `${fill} ${contrast(p.ink, fill)}`);
		for (const text of [p.soft, p.ink, p.oom])
			assert.ok(contrast(text, p.paper) >= 4.5, text);
	});

	test(`${name}: lines and marks stand out from the paper`, () => {
		for (const line of [p.used, p.hidden, p.peak, p.oom, p.hit])
			assert.ok(contrast(line, p.paper) >= 3, `${line} ${contrast(line, p.paper)}`);
	});

	test(`${name}: neighbours on the time line and the two ends of a change stay apart without red or green cones`, () => {
		for (const sight of Object.keys(SIGHT)) {
			for (let i = 0; i + 1 < p.layers.length; i++)
				assert.ok(distance(p.layers[i], p.layers[i + 1], sight) >= 15, `${sight} ${p.layers[i]} ${p.layers[i + 1]} ${distance(p.layers[i], p.layers[i + 1], sight)}`);
			assert.ok(distance(p.grown, p.shrunk, sight) >= 30, sight);
			assert.ok(distance(p.python, p.native, sight) >= 15, sight);
		}
	});

	test(`${name}: the heat map goes one way in lightness, so grey prints tell as much`, () => {
		const light = p.heat.map(luminance);
		assert.ok(light.every((v, i) => i === 0 || (name === "light" ? v < light[i - 1] : v > light[i - 1])));
	});
}
