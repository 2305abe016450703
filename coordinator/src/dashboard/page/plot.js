// Axes, marks and the figure around them.

import { html, svg } from './dom.js';

/// Round numbers from low to high.
export function ticks(low, high, wanted, whole = false) {
  const raw = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw || 1));
  let step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw) ?? power;
  if (whole) step = Math.max(1, Math.ceil(step));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) found.push(i * step);
  return { step, at: found };
}

/// From a little below the least to a little above the greatest, at round numbers.
export function extent(values, { zero = false } = {}) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [0, 1];
  if (zero) {
    low = Math.min(0, low);
    high = Math.max(0, high);
  }
  if (low === high) {
    const room = Math.abs(low) > 0 ? Math.abs(low) / 2 : 1;
    return zero ? [Math.min(0, low - 0), Math.max(high, low + room)] : [low - room, high + room];
  }
  const { step } = ticks(low, high, 5);
  return [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
}

/// Digits after the point that distinguish multiples of a step.
export function decimals(step) {
  for (let n = 0; n < 7; n += 1) if (Math.abs(step * 10 ** n - Math.round(step * 10 ** n)) < 1e-6) return n;
  return 7;
}

/// A figure: its caption, its drawing, and a table of the same values.
export class Figure {
  constructor(element, title, note) {
    this.note = html('p', {}, note);
    this.plot = html('div', { class: 'plot' });
    this.key = html('ul', { class: 'key', hidden: true });
    this.data = html('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `${title}, as a table` });
    this.details = html('details', { ontoggle: () => this.tell() }, html('summary', {}, 'Show as table'), this.data);
    this.title = title;
    element.replaceChildren(html('figcaption', {}, html('h3', {}, title), this.note), this.plot, this.key, this.details);
    element.setAttribute('aria-label', title);
    this.width = 0;
    this.redraw = () => {};
    new ResizeObserver(() => {
      const width = Math.floor(this.plot.clientWidth);
      if (width > 0 && width !== this.width) {
        this.width = width;
        this.redraw();
      }
    }).observe(this.plot);
  }

  /// Draws now and whenever the width changes; `draw` gets the width and gives an element, `tell` gives a table.
  show(draw, tell) {
    this.redraw = () => {
      if (this.width > 0) this.put(draw(this.width));
    };
    this.teller = tell;
    this.redraw();
    this.tell();
  }

  put(drawing) {
    const focused = this.plot.contains(document.activeElement);
    this.plot.replaceChildren(drawing ?? html('p', { class: 'none' }, 'Nothing to show yet.'));
    if (focused) this.plot.querySelector('[tabindex]')?.focus({ preventScroll: true });
    this.details.hidden = !drawing;
  }

  tell() {
    if (this.details.open && this.teller) this.data.replaceChildren(this.teller());
  }

  legend(entries) {
    this.key.hidden = entries.length === 0;
    this.key.replaceChildren(...entries.map(([mark, text]) =>
      html('li', {}, svg('svg', { width: 26, height: 10, 'aria-hidden': 'true' }, svg('path', { class: `curve ${mark}`, d: 'M1 5H25' })), text)));
  }
}

/// An area with two axes. `x` and `y` are { low, high, name, format }.
export class Frame {
  constructor(width, height, x, y, description) {
    const yTicks = ticks(y.low, y.high, Math.max(3, Math.floor(height / 55)), y.whole);
    const format = y.format ?? ((value) => value.toFixed(decimals(yTicks.step)).replace('-', '\u2212'));
    const labels = yTicks.at.map(format);
    const longest = Math.max(...labels.map((label) => label.length), 2);
    this.left = Math.ceil(longest * 7.2) + 10;
    this.right = width - 20;
    this.top = 36;
    this.bottom = height - 38;
    this.xs = x;
    this.ys = y;
    this.svg = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': description });
    this.under = svg('g', {});
    this.svg.append(this.under);
    for (const [index, at] of yTicks.at.entries()) {
      this.svg.append(
        svg('line', { class: at === 0 && y.low < 0 ? 'axis' : 'grid', x1: this.left, x2: this.right, y1: this.y(at), y2: this.y(at) }),
        svg('text', { x: this.left - 8, y: this.y(at) + 4, 'text-anchor': 'end' }, labels[index]),
      );
    }
    this.svg.append(svg('line', { class: 'axis', x1: this.left, x2: this.right, y1: this.bottom, y2: this.bottom }));
    const found = ticks(x.low, x.high, Math.floor(width / 90), true).at.filter((at) => at > x.low && this.x(at) - this.left > 30);
    for (const at of [x.low, ...found]) {
      this.svg.append(
        svg('line', { class: 'axis', x1: this.x(at), x2: this.x(at), y1: this.bottom, y2: this.bottom + 4 }),
        svg('text', { x: this.x(at), y: this.bottom + 17, 'text-anchor': 'middle' }, at.toLocaleString('en')),
      );
    }
    this.svg.append(
      svg('text', { class: 'axis-name', x: 0, y: 12 }, y.name),
      svg('text', { class: 'axis-name', x: this.right, y: height - 4, 'text-anchor': 'end' }, x.name),
    );
  }

  x(value) {
    const { low, high } = this.xs;
    return this.left + ((value - low) / (high - low || 1)) * (this.right - this.left);
  }

  y(value) {
    const { low, high } = this.ys;
    return this.bottom - ((value - low) / (high - low || 1)) * (this.bottom - this.top);
  }

  /// Shades exploring, and names the phases above the area.
  phases(changes, last) {
    changes.forEach(({ round, phase }, index) => {
      const end = changes[index + 1]?.round ?? last + 0.5;
      const from = Math.max(this.left, this.x(Math.max(round - 0.5, this.xs.low)));
      const to = Math.min(this.right, this.x(Math.min(end - (index + 1 < changes.length ? 0.5 : 0), this.xs.high)));
      if (to - from < 1) return;
      if (phase === 'exploring') {
        this.under.append(svg('rect', { class: 'band-phase', x: from, y: this.top, width: to - from, height: this.bottom - this.top }));
      }
      if (to - from > phase.length * 7) this.svg.append(svg('text', { x: from + 2, y: this.top - 6 }, phase));
    });
  }

  curve(points, kind = '') {
    let path = '';
    let pen = 'M';
    for (const [x, y] of points) {
      if (y === null || y === undefined) {
        pen = 'M';
        continue;
      }
      path += `${pen}${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`;
      pen = 'L';
    }
    this.svg.append(svg('path', { class: `curve ${kind}`, d: path }));
  }

  band(points) {
    if (points.length < 2) return;
    const at = (x, y) => `${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`;
    const path = [...points.map(([x, , high]) => at(x, high)), ...[...points].reverse().map(([x, low]) => at(x, low))].join('L');
    this.svg.append(svg('path', { class: 'area', d: `M${path}Z` }));
  }

  level(value, text, kind = 'rule') {
    const y = this.y(value);
    this.svg.append(
      svg('line', { class: kind, x1: this.left, x2: this.right, y1: y, y2: y }),
      svg('text', { class: 'halo', x: this.right - 4, y: y - 6, 'text-anchor': 'end' }, text),
    );
  }
}

/// Lets pointer and arrow keys read marks off a drawing. Marks are { x, y, text } in pixels, by x.
export function inspectable(drawing, marks, axis = 'x') {
  const box = html('div', { class: 'plot', tabindex: marks.length > 0 ? 0 : undefined, role: 'group', 'aria-label': `${drawing.getAttribute('aria-label')} Use the arrow keys to read values.` }, drawing);
  const tip = html('div', { class: 'tip', hidden: true });
  const voice = html('span', { class: 'unseen', 'aria-live': 'polite' });
  const line = svg('line', { class: 'cursor', visibility: 'hidden' });
  const dot = svg('circle', { class: 'cursor-dot', r: 4, visibility: 'hidden' });
  drawing.append(line, dot);
  box.append(tip, voice);
  let current = -1;
  const width = Number(drawing.getAttribute('width'));
  const height = Number(drawing.getAttribute('height'));
  const point = (index, aloud) => {
    current = index;
    const mark = marks[index];
    const seen = mark ? 'visible' : 'hidden';
    dot.setAttribute('visibility', seen);
    line.setAttribute('visibility', seen);
    tip.hidden = !mark;
    if (!mark) return;
    const ends = axis === 'x' ? { x1: mark.x, x2: mark.x, y1: 36, y2: height - 38 } : { x1: 0, x2: width, y1: mark.y, y2: mark.y };
    for (const [name, value] of Object.entries(ends)) line.setAttribute(name, value);
    dot.setAttribute('cx', mark.x);
    dot.setAttribute('cy', mark.y);
    tip.textContent = mark.text;
    const left = mark.x + 12 + tip.offsetWidth > width ? mark.x - 12 - tip.offsetWidth : mark.x + 12;
    tip.style.transform = `translate(${Math.max(0, left)}px, ${Math.max(0, mark.y - tip.offsetHeight - 8)}px)`;
    if (aloud) voice.textContent = mark.text;
  };
  box.addEventListener('pointermove', (event) => {
    const area = drawing.getBoundingClientRect();
    const at = axis === 'x' ? event.clientX - area.left : event.clientY - area.top;
    let best = -1;
    let least = Infinity;
    marks.forEach((mark, index) => {
      const far = Math.abs(mark[axis] - at);
      if (far < least) [best, least] = [index, far];
    });
    point(best, false);
  });
  box.addEventListener('pointerleave', () => point(-1, false));
  box.addEventListener('blur', () => point(-1, false));
  box.addEventListener('keydown', (event) => {
    const last = marks.length - 1;
    const from = current < 0 ? last : current;
    const next = {
      ArrowLeft: Math.max(0, from - 1), ArrowUp: Math.max(0, from - 1), ArrowRight: Math.min(last, from + 1),
      ArrowDown: Math.min(last, from + 1), Home: 0, End: last, Escape: -1,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    point(next, true);
  });
  return box;
}
