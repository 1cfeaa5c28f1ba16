/** Elements in one expression, and attributes that are written only when they change. */

/** Make an HTML element: `html("button", {class: "x", onclick: fn}, "text", child)`. */
export function html(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Make an SVG element. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else put(element, name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A name that may be broken after its underscores, where it would be broken within a word otherwise. */
export function breakable(name) {
  return name.replace(/_/g, "_\u200b");
}

/** Write an attribute (null removes it), or the text under the name "text", unless it is there already. */
export function put(element, name, value) {
  if (name === "text") {
    if (element.textContent !== value) element.textContent = value;
  } else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value === true ? "" : value);
}
