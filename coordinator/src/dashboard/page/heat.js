// The heat map of draws: nodes down, rounds across.

import { count, html, rounds, table } from './dom.js';
import { Figure, ticks } from './plot.js';

const NAMED_MAX = 40;
const TALL = 460;
const BOTTOM = 34;

export class Heat {
  constructor(element) {
    this.figure = new Figure(element, 'Draws over rounds', '');
    this.figure.key.replaceWith(this.#key());
    this.cursor = null;
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.figure.redraw());
  }

  #key() {
    const ramp = html('span', { class: 'ramp', 'aria-hidden': 'true' }, Array.from({ length: 6 }, () => html('i', {})));
    return html('ul', { class: 'key' }, html('li', {}, 'in none of the rounds', ramp, 'in all of them'));
  }

  draw({ draws, nodes }) {
    const standing = new Map(nodes.map((node) => [node.id, node]));
    const rows = draws.rows
      .filter((row) => standing.get(row.id)?.removed === null)
      .sort((a, b) => standing.get(b.id).standing - standing.get(a.id).standing);
    const spans = draws.spans;
    const wide = spans.length > 0 ? spans[0].to - spans[0].from + 1 : 1;
    this.figure.note.textContent = `One row a node, from the highest standing to the lowest; one column ${wide === 1 ? 'a round' : `${count(wide)} rounds`}. The stronger the colour, the more often the node received the model.`;
    this.figure.show(
      (width) => (rows.length > 0 && spans.length > 0 ? this.#paint(width, rows, spans) : null),
      () => table('Draws', ['node', 'received the model', 'last in round'], rows.slice(0, 200).map(({ id }) => {
        const node = standing.get(id);
        return [id, `${count(node.drawn)} times`, count(node.last_drawn)];
      })),
    );
  }

  #paint(width, rows, spans) {
    const few = rows.length <= NAMED_MAX;
    const rowHeight = few ? (rows.length > 20 ? 16 : 20) : TALL / rows.length;
    const left = few ? Math.min(width * 0.3, Math.max(...rows.map((row) => row.id.length)) * 7.4 + 14) : 52;
    const high = Math.round(rowHeight * rows.length);
    const height = high + BOTTOM;
    const scale = window.devicePixelRatio || 1;
    const drawn = rows.reduce((sum, row) => sum + row.shares.replaceAll(/[-0]/g, '').length, 0);
    const label = `Heat map of draws: ${count(rows.length)} nodes over ${count(spans.at(-1).to)} rounds. ${Math.round((100 * drawn) / (rows.length * spans.length))} % of the cells hold a draw.`;
    const canvas = html('canvas', { width: Math.round(width * scale), height: Math.round(height * scale), role: 'img', 'aria-label': label });
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext('2d');
    pen.scale(scale, scale);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const cellWidth = (width - left - 14) / spans.length;
    pen.imageSmoothingEnabled = !few;
    pen.drawImage(pixels(rows, spans, ['--w0', '--w1', '--w2', '--w3', '--w4', '--w5'].map(colour)), left, 0, cellWidth * spans.length, high);
    if (few) {
      pen.fillStyle = colour('--card');
      for (let i = 1; i < rows.length; i += 1) pen.fillRect(left, i * rowHeight - 0.5, width, 1);
      if (cellWidth > 5) for (let i = 1; i < spans.length; i += 1) pen.fillRect(left + i * cellWidth - 0.5, 0, 1, high);
    }
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    pen.textBaseline = 'middle';
    if (few) {
      pen.fillStyle = colour('--ink');
      const letters = Math.floor((left - 12) / 7.2);
      rows.forEach(({ id }, i) => pen.fillText(id.length > letters ? `${id.slice(0, letters - 1)}…` : id, 0, (i + 0.5) * rowHeight));
    } else {
      pen.fillStyle = colour('--soft');
      pen.textAlign = 'right';
      for (const at of [1, ...ticks(1, rows.length, 5, true).at.filter((rank) => rank > 1)]) {
        pen.fillText(count(at), left - 8, Math.min(high - 6, Math.max(7, (at - 0.5) * rowHeight)));
      }
    }
    pen.fillStyle = colour('--soft');
    pen.textAlign = 'center';
    const last = spans.at(-1).to;
    for (const at of [1, ...ticks(1, last, Math.floor(width / 110), true).at.filter((round) => round > last / 40)]) {
      const index = spans.findIndex((span) => span.to >= at);
      if (index >= 0 && at >= 1) pen.fillText(count(at), left + (index + 0.5) * cellWidth, high + 12);
    }
    pen.fillStyle = colour('--ink');
    pen.textAlign = 'right';
    pen.fillText('round', width - 14, high + 27);
    pen.textAlign = 'left';
    if (!few) pen.fillText('rank by standing', left, high + 27);
    return this.#inspect(canvas, rows, spans, { left, cellWidth, rowHeight, high, width });
  }

  #inspect(canvas, rows, spans, { left, cellWidth, rowHeight, high, width }) {
    const tip = html('div', { class: 'tip', hidden: true });
    const voice = html('span', { class: 'unseen', 'aria-live': 'polite' });
    const box = html('div', { class: 'plot', tabindex: 0, role: 'group', 'aria-label': `${canvas.getAttribute('aria-label')} Use the arrow keys to read cells.` }, canvas, tip, voice);
    const point = (row, column, aloud) => {
      this.cursor = [row, column];
      const share = rows[row].shares[column];
      const word = share === '-' ? 'not enrolled' : share === '0' ? 'not drawn' : share === '9' ? 'drawn' : `drawn in about ${Math.round((100 * Number(share)) / 9)} %`;
      tip.textContent = `${rows[row].id}\n${rounds(spans[column])}: ${word}`;
      tip.hidden = false;
      const x = left + (column + 0.5) * cellWidth;
      const side = x + 12 + tip.offsetWidth > width ? x - 12 - tip.offsetWidth : x + 12;
      tip.style.transform = `translate(${side}px, ${Math.max(0, (row + 0.5) * rowHeight - tip.offsetHeight - 6)}px)`;
      if (aloud) voice.textContent = tip.textContent;
    };
    const leave = () => {
      tip.hidden = true;
      this.cursor = null;
    };
    box.addEventListener('pointermove', (event) => {
      const area = canvas.getBoundingClientRect();
      const column = Math.floor((event.clientX - area.left - left) / cellWidth);
      const row = Math.floor((event.clientY - area.top) / rowHeight);
      if (column < 0 || column >= spans.length || event.clientY - area.top >= high) return leave();
      return point(Math.max(0, Math.min(rows.length - 1, row)), column, false);
    });
    box.addEventListener('pointerleave', leave);
    box.addEventListener('blur', leave);
    box.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [-rows.length, 0], End: [rows.length, 0] }[event.key];
      if (event.key === 'Escape') return leave();
      if (!step) return undefined;
      event.preventDefault();
      const [row, column] = this.cursor ?? [0, spans.length - 1 - step[1]];
      const within = (value, most) => Math.max(0, Math.min(most - 1, value));
      return point(within(row + step[0], rows.length), within(column + step[1], spans.length), true);
    });
    return box;
  }
}

/// A pixel a cell.
function pixels(rows, spans, colours) {
  const image = document.createElement('canvas');
  image.width = spans.length;
  image.height = rows.length;
  const pen = image.getContext('2d');
  const data = pen.createImageData(spans.length, rows.length);
  const parsed = colours.map((text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)));
  rows.forEach(({ shares }, row) => {
    for (let column = 0; column < spans.length; column += 1) {
      const share = shares.charCodeAt(column) - 48;
      if (!(share >= 0 && share <= 9)) continue;
      const [r, g, b] = parsed[share === 0 ? 0 : Math.max(1, Math.round((share * 5) / 9))];
      data.data.set([r, g, b, 255], 4 * (row * spans.length + column));
    }
  });
  pen.putImageData(data, 0, 0);
  return image;
}
