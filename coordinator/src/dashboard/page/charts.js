// Charts over rounds and over nodes.

import { capital, count, fixed, html, number, rounds, svg, table } from './dom.js';
import { Frame, decimals, extent, inspectable, ticks } from './plot.js';

const HEIGHT = 270;
/// Up to so many nodes, each is a row with its name; beyond, nodes are ranked.
export const NAMED_MAX = 24;
/// Half of a 95 % interval, in standard errors.
const Z95 = 1.96;

const interval = (node) => `${number(node.standing)} ± ${number(Z95 * node.standing_error, 2)}`;

function roundsAxis(points) {
  const last = points.at(-1)?.to ?? 1;
  return { low: Math.min(points[0]?.from ?? 1, Math.max(1, last - 1)), high: Math.max(2, last), name: 'round' };
}

/// Curves over rounds, with values to inspect.
function overRounds(width, points, changes, { name, y, description, series, level, format = number, yFormat, ring }) {
  const seen = points.filter((point) => series.some(({ value }) => value(point) !== null));
  if (seen.length === 0) return null;
  const [low, high] = y ?? extent(seen.flatMap((point) => series.flatMap(({ value }) => value(point) ?? [])), { zero: true });
  const frame = new Frame(width, HEIGHT, roundsAxis(points), { low, high, name, format: yFormat }, description);
  frame.phases(changes, points.at(-1).to);
  for (const { value, kind } of series.filter((one) => one.kind !== 'marks')) frame.curve(seen.filter((point) => value(point) !== null).map((point) => [point.to, value(point)]), kind);
  const first = series[0].value;
  for (const { value, kind } of series) {
    const own = seen.filter((point) => value(point) !== null);
    if (own.length > 60 && kind !== 'marks') continue;
    for (const point of own) frame.svg.append(svg('circle', { class: `dot ${kind ?? ''}`, r: 2.4, cx: frame.x(point.to), cy: frame.y(value(point)) }));
  }
  if (level) frame.level(level.value, level.text);
  const marked = ring && seen.find(ring);
  if (marked) frame.svg.append(svg('circle', { class: 'ring', r: 6, cx: frame.x(marked.to), cy: frame.y(first(marked)) }));
  const words = (point) => series.filter(({ value }) => value(point) !== null).map(({ label, value }) => `${label} ${format(value(point))}`);
  const marks = seen.map((point) => ({
    x: frame.x(point.to), y: frame.y(series.map(({ value }) => value(point)).find((value) => value !== null)), text: [capital(rounds(point)), ...words(point)].join('\n'),
  }));
  return inspectable(frame.svg, marks);
}

function roundsTable(title, points, series, format = number) {
  const shown = points.filter((point) => series.some(({ value }) => value(point) !== null)).slice(-200).reverse();
  const rows = shown.map((point) => [capital(rounds(point)), ...series.map(({ value }) => format(value(point)))]);
  return table(title, ['rounds, latest first', ...series.map(({ label }) => label)], rows);
}

/// One value of every node. `item` is { name, value, spread, level, whole, format, text }.
function ofNodes(width, nodes, item) {
  if (nodes.length === 0) return null;
  return nodes.length <= NAMED_MAX ? named(width, nodes, item) : ranked(width, nodes, item);
}

function named(width, nodes, { name, value, spread = () => 0, level, format = (it) => number(it, 3), text, bars, whole, description }) {
  const row = nodes.length > 14 ? 21 : 25;
  const top = 24;
  const height = top + nodes.length * row + 40;
  const longest = Math.max(...nodes.map((node) => node.id.length));
  const left = Math.min(width * 0.3, longest * 7.4 + 14);
  const letters = Math.floor((left - 12) / 7.2);
  const ends = nodes.flatMap((node) => [value(node) - spread(node), value(node) + spread(node)]);
  const [low, high] = extent(level ? [...ends, level.value] : ends, { zero: true });
  const right = width - 64;
  const x = (at) => left + ((at - low) / (high - low)) * (right - left);
  const drawing = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': description });
  const bottom = top + nodes.length * row;
  const found = ticks(low, high, width > 500 ? 5 : 3, whole);
  for (const at of found.at) {
    drawing.append(
      svg('line', { class: Math.abs(at) < found.step * 1e-6 ? 'axis' : 'grid', x1: x(at), x2: x(at), y1: top - 4, y2: bottom }),
      svg('text', { x: x(at), y: bottom + 16, 'text-anchor': 'middle' }, fixed(at, decimals(found.step))),
    );
  }
  if (level) {
    drawing.append(
      svg('line', { class: 'equal', x1: x(level.value), x2: x(level.value), y1: top - 8, y2: bottom }),
      svg('text', { x: x(level.value), y: top - 12, 'text-anchor': 'middle' }, level.text),
    );
  }
  const marks = nodes.map((node, index) => {
    const y = top + (index + 0.5) * row;
    const at = x(value(node));
    const short = node.id.length > letters ? `${node.id.slice(0, letters - 1)}…` : node.id;
    drawing.append(svg('text', { class: 'label', x: 0, y: y + 4 }, short));
    if (bars) {
      const from = Math.min(x(0), at);
      drawing.append(svg('rect', { class: 'bar-mark', x: from, y: y - row * 0.28, width: Math.max(1, Math.abs(at - x(0))), height: row * 0.56, rx: 2 }));
    } else {
      drawing.append(
        svg('path', { class: 'whisker', d: `M${x(value(node) - spread(node))} ${y - 4}v8m0-4H${x(value(node) + spread(node))}m0-4v8` }),
        svg('circle', { class: node.present ? 'dot' : 'dot away', r: 4.5, cx: at, cy: y }),
      );
    }
    drawing.append(svg('text', { x: width, y: y + 4, 'text-anchor': 'end' }, format(value(node))));
    return { x: at, y, text: text(node) };
  });
  drawing.append(svg('text', { class: 'axis-name', x: right, y: height - 4, 'text-anchor': 'end' }, name));
  return inspectable(drawing, marks, 'y');
}

function ranked(width, nodes, { name, value, spread = () => 0, level, text, bars, whole, description }) {
  const ends = nodes.flatMap((node) => [value(node) - spread(node), value(node) + spread(node)]);
  const [low, high] = extent(level ? [...ends, level.value] : ends, { zero: true });
  const x = { low: 1, high: nodes.length, name: 'nodes, from the highest standing to the lowest' };
  const frame = new Frame(width, HEIGHT, x, { low, high, name, whole }, description);
  let whiskers = '';
  let dots = '';
  const marks = nodes.map((node, index) => {
    const at = frame.x(index + 1);
    const y = frame.y(value(node));
    const [from, to] = bars ? [frame.y(0), y] : [frame.y(value(node) - spread(node)), frame.y(value(node) + spread(node))];
    whiskers += `M${at.toFixed(1)} ${from.toFixed(1)}V${to.toFixed(1)}`;
    if (!bars) dots += `M${at.toFixed(1)} ${y.toFixed(1)}h0`;
    return { x: at, y, text: `${text(node)}\nrank ${count(index + 1)}` };
  });
  const thin = svg('path', { class: nodes.length > 200 ? 'whisker thin' : 'whisker', d: whiskers });
  frame.svg.append(thin);
  if (bars) {
    thin.setAttribute('class', 'whisker');
    thin.style.strokeWidth = `${Math.max(1, (frame.right - frame.left) / nodes.length * 0.75)}px`;
    thin.style.opacity = '1';
  }
  if (dots) {
    const marksPath = svg('path', { class: 'dots', d: dots });
    if (nodes.length > 200) marksPath.style.strokeWidth = '2px';
    frame.svg.append(marksPath);
  }
  if (level) frame.level(level.value, level.text, 'equal');
  return inspectable(frame.svg, marks);
}

function nodesTable(title, nodes, columns) {
  const rows = nodes.slice(0, 200).map((node) => [node.id, ...columns.map(([, value]) => value(node))]);
  const caption = nodes.length > 200 ? `${title}, the first 200; the table of all nodes is below` : title;
  return table(caption, ['node', ...columns.map(([label]) => label)], rows);
}

/// Counts, a bar each.
export function tally(width, rows) {
  const row = 26;
  const height = rows.length * row + 6;
  const left = Math.min(width * 0.45, 190);
  const most = Math.max(...rows.map(([, value]) => value), 1);
  const drawing = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': rows.map(([what, value]) => `${what}: ${count(value)}`).join('; ') });
  rows.forEach(([what, value, kind], index) => {
    const y = index * row + row / 2 + 2;
    const long = (value / most) * (width - left - 90);
    drawing.append(
      svg('text', { class: 'label', x: 0, y: y + 4 }, what),
      svg('rect', { class: kind, x: left, y: y - 8, width: Math.max(value > 0 ? 2 : 0, long), height: 16, rx: 2 }),
      svg('text', { x: left + Math.max(0, long) + 8, y: y + 4 }, count(value)),
    );
  });
  return html('div', {}, drawing);
}

export { HEIGHT, Z95, interval, nodesTable, ofNodes, overRounds, roundsTable };
