// One node's own page.

import { HEIGHT, Z95, overRounds, roundsTable, tally } from './charts.js';
import { capital, count, fixed, html, number, percent, plain, svg, table } from './dom.js';
import { Figure, Frame, extent, inspectable } from './plot.js';
import { stateMark } from './table.js';

export const tile = (name, value, note, alert = false) =>
  html('div', { class: alert ? 'tile alert' : 'tile' }, html('dt', {}, name), html('dd', {}, value, html('small', {}, note)));

export class NodeView {
  constructor(element, operator) {
    this.element = element;
    this.operator = operator;
    this.id = null;
  }

  /// Shows the page of another node.
  open(id) {
    this.id = id;
    this.heading = html('h1', { tabindex: -1 }, id);
    this.state = html('span', {});
    this.remove = html('button', { type: 'button', class: 'danger', hidden: true, onclick: () => this.operator.remove(id) }, 'Remove node');
    this.tiles = html('dl', { class: 'tiles' });
    const figures = ['standing', 'contribution', 'wait', 'loss', 'responses'].map((name) => html('figure', { id: `node-${name}` }));
    this.element.replaceChildren(
      html('p', { class: 'back' }, html('a', { href: '#/' }, '← All nodes')),
      html('div', { class: 'head' }, this.heading, this.state, this.remove),
      this.tiles,
      html('div', { class: 'pair' }, figures.slice(0, 2)),
      html('div', { class: 'pair' }, figures.slice(2, 4)),
      html('div', { class: 'pair' }, figures.slice(4)),
    );
    const [standing, contribution, wait, loss, responses] = figures;
    this.standing = new Figure(standing, 'Standing over rounds', 'Mean contribution ψ and its 95 % interval.');
    this.contribution = new Figure(contribution, 'Contribution by round', 'Shapley value φ of the node’s update, in rounds in which it was measured.');
    this.wait = new Figure(wait, 'Waiting for the model', 'Rounds since the node last received it; marks below are draws.');
    this.loss = new Figure(loss, 'Loss on its own batches', 'Of the common model it was sent, before its update.');
    this.responses = new Figure(responses, 'Responses and refusals', 'Its responses by round, and its messages that were refused.');
    this.heading.focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  missing() {
    this.tiles.replaceChildren(html('p', { class: 'notice' }, 'No node of this name has taken part in a round yet.'));
  }

  draw(node, overview) {
    const { changes } = overview;
    const points = node.history;
    this.state.replaceChildren(stateMark(node));
    this.remove.hidden = !this.operator.unlocked || node.removed !== null;
    const refused = Object.values(node.refusals).reduce((sum, value) => sum + value, 0);
    this.tiles.replaceChildren(
      tile('Standing ψ', number(node.standing), `± ${number(node.standing_error, 3)} standard error; rank ${count(node.rank)} of ${count(node.of)}`),
      tile('Sampling probability ϱ', number(node.probability), `equal share ${number(1 / Math.max(1, node.of), 3)}`),
      tile('Received the model', `${count(node.drawn)} ×`, node.last_drawn === null ? 'never yet' : `last in round ${count(node.last_drawn)}`),
      tile('Staleness', `${count(node.staleness)} rounds`, `mean ${fixed(node.staleness_mean, 2)}, longest ${count(node.staleness_max)}`),
      tile('Last loss', number(node.loss), node.online_loss === null ? 'own forecasts not reported' : `own forecasts ${number(node.online_loss)}`),
      tile('Skill', percent(node.skill), 'of its forecasts over four weeks, against the best naive one'),
      tile('Last update', node.samples === null ? '–' : `${count(node.samples)} samples`, `norm ${number(node.norm)}; ${count(refused)} messages refused`, refused > 0),
    );

    const standing = [{ label: 'ψ', value: (point) => point.standing }, { label: '± s.e.', value: (point) => point.standing_error }];
    this.standing.show((width) => {
      if (points.length === 0) return null;
      const bounds = points.map((p) => [p.to, p.standing - Z95 * p.standing_error, p.standing + Z95 * p.standing_error]);
      const [low, high] = extent(bounds.flatMap(([, a, b]) => [a, b]), { zero: true });
      const x = { low: Math.min(points[0].from, Math.max(1, points.at(-1).to - 1)), high: Math.max(2, points.at(-1).to), name: 'round' };
      const frame = new Frame(width, HEIGHT, x, { low, high, name: 'standing ψ' }, `Standing over rounds; now ${number(node.standing)}.`);
      frame.phases(changes, points.at(-1).to);
      frame.band(bounds);
      frame.curve(points.map((p) => [p.to, p.standing]));
      return inspectable(frame.svg, points.map((p) => ({ x: frame.x(p.to), y: frame.y(p.standing), text: `Round ${count(p.to)}\nψ ${number(p.standing)} ± ${number(Z95 * p.standing_error, 2)}` })));
    }, () => roundsTable('Standing by round', points, standing));

    const phi = [{ label: 'φ', value: (point) => point.contribution }];
    this.contribution.show((width) => overRounds(width, points, changes, { name: 'contribution φ', series: phi, description: 'Contribution by round.' }),
      () => roundsTable('Contribution by round', points, phi));

    const wait = [{ label: 'waits', value: (point) => point.staleness }, { label: 'draws', value: (point) => point.drawn }];
    this.wait.show((width) => this.#waits(width, points, changes), () => roundsTable('Waiting by round', points, wait, (value) => count(value)));

    const loss = [{ label: 'loss', value: (point) => point.loss }];
    this.loss.show((width) => overRounds(width, points, changes, { name: 'loss', series: loss, description: 'Loss on its own batches.' }),
      () => roundsTable('Loss by round', points, loss));

    const rows = [
      ...Object.entries(node.responses).map(([response, value]) => [capital(response), value, 'bar-mark']),
      ...Object.entries(node.refusals).map(([reason, value]) => [`Refused: ${plain(reason)}`, value, 'bar-mark soft']),
    ];
    this.responses.show((width) => tally(width, rows), () => table('Responses and refusals', ['what', 'how often'], rows.map(([what, value]) => [what, count(value)])));
  }

  #waits(width, points, changes) {
    if (points.length === 0) return null;
    const most = Math.max(4, ...points.map((point) => point.staleness));
    const [, high] = extent([0, most], { zero: true });
    const x = { low: Math.min(points[0].from, Math.max(1, points.at(-1).to - 1)), high: Math.max(2, points.at(-1).to), name: 'round' };
    const frame = new Frame(width, HEIGHT, x, { low: 0, high, name: 'rounds since last received', whole: true }, `Staleness over rounds; the longest wait is ${most}.`);
    frame.phases(changes, points.at(-1).to);
    frame.curve(points.map((point) => [point.to, point.staleness]));
    const draws = points.filter((point) => point.drawn > 0).map((point) => `M${frame.x(point.to).toFixed(1)} ${frame.bottom - 7}v7`);
    frame.svg.append(svg('path', { class: 'whisker', d: draws.join('') }));
    const text = (p) => `Round ${count(p.to)}\n${p.drawn > 0 ? 'received the model' : `waits ${count(p.staleness)} rounds`}`;
    return inspectable(frame.svg, points.map((p) => ({ x: frame.x(p.to), y: frame.y(p.staleness), text: text(p) })));
  }
}
