// Elements and texts.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/// An HTML element; what comes from the wire is only ever text in it.
export const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
export const byId = (id) => document.getElementById(id);

/// Sets a text only if it changes, so that selections and screen readers are not disturbed.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const minus = (text) => text.replace('-', '\u2212');
const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const count = (value) => (value === null || value === undefined ? '–' : minus(grouped.format(value)));

/// About four significant digits, without exponents where they can be avoided.
export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-5) return minus(value.toExponential(digits - 2));
  const decimals = Math.max(0, Math.min(6, digits - 1 - Math.floor(Math.log10(size))));
  return minus(value.toFixed(decimals));
}

export const fixed = (value, decimals) =>
  value === null || value === undefined ? '–' : minus(value.toFixed(decimals));

export const percent = (share) =>
  share === null || share === undefined ? '–' : `${minus((100 * share).toFixed(1))} %`;

export function bytes(value) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 99.5 ? value.toFixed(0) : value.toFixed(1)} ${units[unit]}`;
}

export const rounds = ({ from, to }) => (from === to ? `round ${count(from)}` : `rounds ${count(from)}–${count(to)}`);

/// A word such as `not-drawn`, for people.
export const plain = (word) => word.replaceAll('-', ' ');

export const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);

/// A table from a head and rows of texts.
export function table(caption, head, rows) {
  const cells = (row) => row.map((cell, index) => html(index === 0 ? 'th' : 'td', index === 0 ? { scope: 'row' } : {}, cell));
  return html(
    'table', {},
    html('caption', { class: 'unseen' }, caption),
    html('thead', {}, html('tr', {}, head.map((name) => html('th', { scope: 'col' }, name)))),
    html('tbody', {}, rows.map((row) => html('tr', {}, cells(row)))),
  );
}
