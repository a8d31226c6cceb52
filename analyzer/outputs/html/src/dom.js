/* SPDX-License-Identifier: MIT */
/* The only way this page makes elements: text goes in as text, never as markup. */

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes || {})) {
		if (value === null || value === undefined || value === false)
			continue;
		if (name.startsWith("on"))
			node.addEventListener(name.slice(2), value);
		else if (name === "style")
			for (const [k, v] of Object.entries(value))
				node.style.setProperty(k, v);
		else
			node.setAttribute(name, value === true ? "" : value);
	}
	append(node, children);
	return node;
}

export function append(node, children) {
	for (const child of children.flat(3))
		if (child !== null && child !== undefined && child !== false)
			node.append(child instanceof Node ? child : document.createTextNode(String(child)));
	return node;
}

export function h(tag, attributes, ...children) {
	return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
	return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function replace(node, ...children) {
	node.textContent = "";
	return append(node, children);
}
