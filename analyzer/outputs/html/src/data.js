/* SPDX-License-Identifier: MIT */
/*
 * From the base64 in the page, or from a stormlog-server, to columns (doc/report-page.md).  Decoded once: base64 and gzip by
 * the browser, msgpack without touching a number of a column.
 */
import {decode, ExtensionCodec} from "@msgpack/msgpack";
import {countEvents} from "./format.js";

/* msgpack extension types: little-endian columns */
const COLUMNS = {1: Uint8Array, 2: Uint16Array, 3: Uint32Array, 4: Float32Array, 5: Float64Array};

const codec = new ExtensionCodec();
for (const [type, Column] of Object.entries(COLUMNS))
	codec.register({type: Number(type), encode: () => null, decode: (data) => {
		const copy = data.slice(); /* aligned */
		return new Column(copy.buffer, 0, copy.byteLength / Column.BYTES_PER_ELEMENT);
	}});

export function unpack(raw) {
	const page = decode(raw, {extensionCodec: codec});
	if (page.schema !== "stormlog.page" || page.version !== 2)
		throw new Error(`data of this page is ${page.schema} version ${page.version}, and not for this reader`);
	page.answer ??= null;
	page.timeless = page.t0_unix_ns === null;
	page.t0 = BigInt(page.t0_unix_ns ?? 0);
	countEvents(page.timeless);
	return page;
}

export async function load(base64) {
	const response = await fetch("data:application/octet-stream;base64," + base64);
	const stream = response.body.pipeThrough(new DecompressionStream("gzip"));
	return unpack(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/* What a server has at `address`; it may have to compute it first. */
export async function ask(address, {signal, get = fetch, pause = 100} = {}) {
	for (;;) {
		const response = await get(address, {signal});
		if (response.status === 200)
			return unpack(new Uint8Array(await response.arrayBuffer()));
		if (response.status !== 202)
			throw new Error((await response.json()).error);
		await new Promise((done) => setTimeout(done, pause));
		pause = Math.min(2 * pause, 2000);
	}
}
