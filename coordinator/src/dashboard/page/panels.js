// The panels of the overview. A new panel is one function and one line of PANELS.

import { Z95, interval, nodesTable, ofNodes, overRounds, roundsTable, tally } from './charts.js';
import { bytes, count, fixed, html, number, percent, plain, table } from './dom.js';
import { Figure } from './plot.js';

/// Section of the page, id, title, note and drawing function of each panel, in the order of the page.
const PANELS = [
  ['learning', 'p-value', 'Stop rule', '', stopRule],
  ['learning', 'loss', 'Loss of the common model', 'Mean over the round’s updates, weighted by samples.', loss],
  ['shares', 'standings', 'Standings', 'Mean contribution ψ with its 95 % interval.', standings],
  ['shares', 'odds', 'Sampling probabilities', '', odds],
  ['reward', 'waiting', 'Waiting now', 'Rounds since each node received the model.', waiting],
  ['reward', 'staleness', 'Staleness over rounds', 'Mean over nodes, and the longest wait.', staleness],
  ['reward', 'skill', 'Skill of the forecasts', 'Against the best naive one over four weeks, from those who wait least on average to those who wait most: what being drawn was worth.', skill],
  ['wire', 'traffic', 'Traffic', 'Payload bytes of the coordinator’s link, a round.', traffic],
  ['wire', 'present', 'Nodes present', 'Nodes online when a round closed, and nodes asked in it.', present],
  ['wire', 'refusals', 'Responses and refusals', '', responses],
];

/// Points of the moving mean of the loss.
const LOSS_WINDOW = 12;

export class Panels {
  /// Adds a figure for each panel to the elements `SECTION-panels`.
  constructor(find) {
    this.panels = PANELS.map(([section, id, title, note, draw]) => {
      const element = html('figure', { id });
      find(`${section}-panels`).append(element);
      return { figure: new Figure(element, title, note), draw };
    });
  }

  draw(state) {
    for (const { figure, draw } of this.panels) draw(figure, state);
  }
}

const total = (counts) => Object.values(counts).reduce((sum, value) => sum + value, 0);
const byStanding = (nodes) => nodes.filter((node) => node.removed === null).sort((a, b) => b.standing - a.standing);

function stopRule(figure, { overview, points }) {
  const { changes, drift, stop_rule: rule } = overview;
  const paper = rule.rule === 'paper';
  const threshold = `${paper ? 'α =' : 'level'} ${rule.threshold}`;
  figure.note.textContent = paper
    ? `Hotelling’s T² on ${rule.tested_nodes} tested nodes; ${overview.policy === 'paper' ? 'exploring ends when' : 'standings are settled once'} p reaches ${threshold}.`
    : `${overview.policy === 'paper' ? 'Exploring ends when' : 'Standings are settled once'} no test of ${rule.tested_nodes} tested nodes sees a change at ${threshold} and the standings are precise enough.`;
  const series = [{ label: 'p', value: (point) => point.p_value }];
  if (drift) {
    series.push({ label: 'drift p', value: (point) => point.drift_p_value, kind: 'marks' });
    figure.legend([['', 'stop rule'], ['marks', `drift test, every ${drift.every} rounds at level ${drift.level}`]]);
  }
  const ended = changes.findLast((change, index) => change.phase === 'exploiting' && changes[index - 1]?.phase === 'exploring');
  figure.show((width) => overRounds(width, points, changes, {
    name: 'p-value', y: [0, 1], series, level: { value: rule.threshold, text: threshold }, format: (value) => fixed(value, 3),
    ring: ended && ((point) => point.to === ended.round - 1),
    description: `p-value of the stop rule over rounds; the last is ${fixed(rule.p_value, 3)}, it has to reach ${rule.threshold}.`,
  }), () => roundsTable('p-value by round', points, series, (value) => fixed(value, 4)));
}

function loss(figure, { overview, points }) {
  const means = smoothed(points);
  const series = [
    { label: 'moving mean', value: (point) => means.get(point.to) ?? null },
    { label: 'loss', value: (point) => point.loss, kind: 'faint' },
  ];
  figure.legend([['', `mean of ${LOSS_WINDOW} rounds`], ['faint', 'each round']]);
  figure.show((width) => overRounds(width, points, overview.changes, {
    name: 'loss', series, description: `Loss of the common model over rounds; the last is ${number(overview.loss)}.`,
  }), () => roundsTable('Loss by round', points, series));
}

/// The mean loss of the last few points, by round: batches are small, so that single losses scatter.
function smoothed(points) {
  const known = points.filter((point) => point.loss !== null);
  return new Map(known.map((point, index) => {
    const last = known.slice(Math.max(0, index - LOSS_WINDOW + 1), index + 1);
    return [point.to, last.reduce((sum, one) => sum + one.loss, 0) / last.length];
  }));
}

function standings(figure, { nodes }) {
  const ordered = byStanding(nodes);
  const best = ordered[0];
  figure.show((width) => ofNodes(width, ordered, {
    name: 'standing ψ', value: (node) => node.standing, spread: (node) => Z95 * node.standing_error,
    text: (node) => `${node.id}\nψ ${interval(node)}`,
    description: `Standings of ${count(ordered.length)} nodes${best ? `, the highest ${best.id} with ${number(best.standing)}` : ''}.`,
  }), () => nodesTable('Standings', ordered, [['standing ψ', (n) => number(n.standing)], ['standard error', (n) => number(n.standing_error, 3)]]));
}

function odds(figure, { overview, nodes }) {
  const { changes, draws } = overview;
  const ordered = byStanding(nodes);
  const equal = ordered.length > 0 ? 1 / ordered.length : 0;
  const exploring = overview.phase === 'exploring' || changes.at(-1)?.phase === 'exploring';
  const promised = draws.worst_wait === null ? '' : `, the lowest at which nobody waits longer than ${number(draws.worst_wait, 3)} rounds on average`;
  const found = promised || !draws.worst_staleness ? promised : `, found for a worst expected staleness of ${draws.worst_staleness} rounds`;
  figure.note.textContent = exploring
    ? 'Equal while contributions are measured.'
    : `Odds ϱ of one of ${draws.k} draws a round; temperature β = ${number(draws.temperature, 3)}${found}. ${leastOdds(ordered)}`;
  figure.show((width) => ofNodes(width, ordered, {
    name: 'sampling probability ϱ', value: (node) => node.probability, bars: true,
    level: { value: equal, text: 'equal share' }, text: (node) => `${node.id}\nϱ ${number(node.probability)}`,
    description: `Sampling probabilities of ${count(ordered.length)} nodes; an equal share is ${number(equal, 3)}.`,
  }), () => nodesTable('Sampling probabilities', ordered, [['sampling probability ϱ', (n) => number(n.probability)]]));
}

function leastOdds(nodes) {
  const without = nodes.filter((node) => node.probability === 0).length;
  if (without > 0) return `${count(without)} of ${count(nodes.length)} nodes have no odds.`;
  return nodes.length > 0 ? `The least is ${number(Math.min(...nodes.map((node) => node.probability)), 3)}.` : '';
}

function waiting(figure, { overview, nodes }) {
  const ordered = byStanding(nodes);
  figure.show((width) => ofNodes(width, ordered, {
    name: 'rounds since last received', value: (node) => node.staleness, bars: true, whole: true, format: count,
    text: (node) => `${node.id}\nwaits ${count(node.staleness)} rounds, on average ${fixed(node.staleness_mean, 2)}`,
    description: `Rounds since each node received the model: mean ${fixed(overview.staleness.mean, 2)}, longest ${overview.staleness.max}.`,
  }), () => nodesTable('Staleness', ordered, [['now', (n) => count(n.staleness)], ['mean', (n) => fixed(n.staleness_mean, 2)]]));
}

function staleness(figure, { overview, points }) {
  const series = [
    { label: 'mean', value: (point) => point.staleness_mean },
    { label: 'longest', value: (point) => point.staleness_max, kind: 'second' },
  ];
  figure.legend([['', 'mean over nodes'], ['second', 'longest wait']]);
  figure.show((width) => overRounds(width, points, overview.changes, {
    name: 'rounds', series, format: (value) => number(value, 3), description: 'Mean and longest staleness over rounds.',
  }), () => roundsTable('Staleness by round', points, series, (value) => number(value, 3)));
}

function skill(figure, { nodes }) {
  const ordered = nodes.filter((node) => node.skill !== null && node.removed === null).sort((a, b) => a.staleness_mean - b.staleness_mean);
  figure.show((width) => ofNodes(width, ordered, {
    name: 'skill', value: (node) => node.skill, format: percent,
    text: (node) => `${node.id}\nskill ${percent(node.skill)}, waits ${fixed(node.staleness_mean, 2)} rounds on average`,
    description: `Skill of the forecasts of ${count(ordered.length)} nodes, in the order of their mean wait.`,
  }), () => nodesTable('Skill', ordered, [['skill', (n) => percent(n.skill)], ['mean wait', (n) => fixed(n.staleness_mean, 2)]]));
}

function traffic(figure, { overview, points }) {
  const flow = flows(points);
  const series = [
    { label: 'to nodes', value: (point) => point.down },
    { label: 'from nodes', value: (point) => point.up, kind: 'second' },
  ];
  figure.legend([['', 'to nodes'], ['second', 'from nodes']]);
  figure.show((width) => overRounds(width, flow, overview.changes, {
    name: 'bytes a round', series, format: bytes, yFormat: bytes,
    description: `Payload bytes a round; so far ${bytes(overview.traffic.bytes_down)} to nodes and ${bytes(overview.traffic.bytes_up)} from nodes.`,
  }), () => roundsTable('Bytes by round', flow, series, bytes));
}

/// Bytes a round, from totals.
function flows(points) {
  let before = { bytes_up: 0, bytes_down: 0 };
  return points.map((point) => {
    const share = (name) => {
      const more = point[name] - before[name];
      // Totals restart with the coordinator.
      return (more >= 0 ? more : point[name]) / (point.to - point.from + 1);
    };
    const flow = { from: point.from, to: point.to, up: share('bytes_up'), down: share('bytes_down') };
    before = point;
    return flow;
  });
}

function present(figure, { overview, points }) {
  const series = [
    { label: 'present', value: (point) => point.present },
    { label: 'asked a round', value: (point) => point.asked / (point.to - point.from + 1), kind: 'second' },
  ];
  figure.legend([['', 'present'], ['second', 'asked a round']]);
  figure.show((width) => overRounds(width, points, overview.changes, {
    name: 'nodes', series, format: (value) => number(value, 3), description: `Nodes present over rounds; now ${count(overview.nodes.present)}.`,
  }), () => roundsTable('Nodes by round', points, series, (value) => number(value, 3)));
}

function responses(figure, { overview }) {
  const [asked, refused] = [total(overview.responses), total(overview.refusals)];
  figure.note.textContent = `${count(asked)} nodes were asked; ${count(refused)} messages were refused.`;
  const meanings = { arrived: 'update counted', declined: 'declined by the node', refused: 'update refused', disconnected: 'node disconnected', missed: 'deadline missed' };
  const rows = [
    ...Object.entries(overview.responses).map(([response, value]) => [meanings[response] ?? response, value, 'bar-mark']),
    ...Object.entries(overview.refusals).map(([reason, value]) => [`refused: ${plain(reason)}`, value, 'bar-mark soft']),
  ];
  figure.show((width) => (asked + refused > 0 ? tally(width, rows) : null),
    () => table('Responses and refusals', ['what', 'how often'], rows.map(([what, value]) => [what, count(value)])));
}
