// The page: subscribes to events, fetches changes, and draws the visible part.

import { byId, bytes, capital, count, fixed, html, number, percent, say } from './dom.js';
import { Heat } from './heat.js';
import { NodeView, tile } from './node.js';
import { Operator } from './operator.js';
import { Panels } from './panels.js';
import { NodeTable } from './table.js';

const state = { overview: null, points: [], nodes: [], draws: { spans: [], rows: [] } };
const panels = new Panels(byId);
const heat = new Heat(byId('draws'));
const everyone = new NodeTable(byId('nodes'), (id) => { location.hash = `#/node/${encodeURIComponent(id)}`; });
const operator = new Operator(() => refresh());
const nodeView = new NodeView(byId('node'), operator);
const ENDS = ['finished', 'failed'];

async function get(path) {
  const answer = await fetch(`/api/v1/${path}`, { headers: { Accept: 'application/json' } });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

// ---- headline and tiles ----

/// The round under way; of how many, if there is an end.
const ofRounds = (round, rounds) => `round ${count(round)}${rounds > 0 ? ` of ${count(rounds)}` : ''}`;

function headline({ phase, round, rounds, failure, nodes }) {
  switch (phase) {
    case 'enrolling': return `Enrolling: ${count(nodes.present)} of ${count(nodes.wanted)} nodes are here`;
    case 'exploring': return `Exploring, ${ofRounds(round, rounds)}`;
    case 'exploiting': return `Exploiting, ${ofRounds(round, rounds)}`;
    case 'running': return `Running, ${ofRounds(round, rounds)}`;
    case 'paused': return `Paused after round ${count(round)}`;
    case 'finished': return `Finished after ${count(round)} rounds`;
    default: return `Failed in round ${count(round)}${failure ? '' : '.'}`;
  }
}

function explanation({ phase, failure, outrun, stop_rule: rule, draws, drift, nodes }) {
  if (nodes.present === 0 && ['exploring', 'exploiting', 'running'].includes(phase)) return 'No node is here; the next round begins when one is back.';
  switch (phase) {
    case 'enrolling': return 'The first round begins when enough nodes are here.';
    case 'exploring': return `Everybody takes part while contributions are measured. Stop rule: ${rule.reason ?? 'no test yet'}.`;
    case 'exploiting': return `Standings are measured${rule.p_value === null ? '' : ` (the test ended at p = ${fixed(rule.p_value, 3)})`}: ${count(draws.k)} of ${count(nodes.enrolled)} nodes a round are drawn by them and receive the latest model.${drift?.reason ? ` Drift test: ${drift.reason}.` : ''}`;
    case 'running': return `Everybody is measured in every round; ${count(draws.k)} of ${count(nodes.enrolled)} nodes a round are drawn by what is known so far and receive the latest model.${outrun ? ` ${capital(outrun)}.` : ''}`;
    case 'paused': return 'The operator has halted the federation; no further round is opened.';
    case 'finished': return 'It has ended. The figures below are final; raise federation.rounds and start the coordinator again to go on.';
    default: return failure ?? 'The federation cannot go on.';
  }
}

function steps({ phase, policy, rounds, changes }) {
  const known = policy === 'paper' ? ['enrolling', 'exploring', 'exploiting', 'finished'] : ['enrolling', 'running', ...(rounds > 0 || phase === 'finished' ? ['finished'] : [])];
  const current = known.includes(phase) ? phase : (changes.at(-1)?.phase ?? 'enrolling');
  const items = known.map((step) => html('li', step === current ? { 'aria-current': 'step' } : {}, html('span', {}, capital(step))));
  if (!known.includes(phase)) items.push(html('li', { class: 'off' }, html('span', {}, capital(phase))));
  byId('steps').replaceChildren(...items);
}

function tiles(overview) {
  const { nodes, open, stop_rule: rule, staleness, skill, traffic, refusals, responses } = overview;
  const refused = Object.values(refusals).reduce((sum, value) => sum + value, 0);
  const lost = responses.disconnected + responses.missed;
  byId('tiles').replaceChildren(
    tile('Nodes present', count(nodes.present), `${count(nodes.enrolled)} enrolled${nodes.removed ? `, ${count(nodes.removed)} removed` : ''}`),
    tile('Open round', open ? `${count(open.asked - open.awaited)} / ${count(open.asked)}` : '–', open ? 'responses received' : 'no round is open'),
    tile('Loss', number(overview.loss), overview.loss_round === null ? 'of the common model; no round had one yet' : `of the common model, in round ${count(overview.loss_round)}`),
    overview.policy === 'paper'
      ? tile('Stop rule p', fixed(rule.p_value, 3), `ends exploring at ${rule.threshold}`)
      : tile('Settled standings, p', fixed(rule.p_value, 3), `settled at ${rule.threshold}; nothing waits for it`),
    tile('Staleness', `${fixed(staleness.mean, 1)} rounds`, `mean; the longest ${count(staleness.max)}`),
    skill === null ? tile('Skill', '–', 'no forecasts judged yet') : tile('Skill', percent(skill.median), `median; ${count(skill.ahead)} of ${count(skill.nodes)} ahead of the best naive forecast`),
    tile('Traffic', bytes(traffic.bytes_up + traffic.bytes_down), `${bytes(traffic.bytes_down)} to nodes, ${bytes(traffic.bytes_up)} back`),
    tile('Refused', count(refused), lost > 0 ? `messages; ${count(lost)} responses never came` : 'messages', refused > 0),
  );
}

let announced = '';
function showOverview(overview) {
  document.title = `${headline(overview)} · ${overview.name} · Evenhand`;
  say(byId('name'), overview.name);
  say(byId('headline'), headline(overview));
  say(byId('verdict'), explanation(overview));
  steps(overview);
  tiles(overview);
  operator.fit(overview.phase);
  // Only the paper's phases have an exploration to repeat.
  document.querySelector('[data-command="re-explore"]').hidden = overview.policy !== 'paper';
  const closed = state.points.at(-1)?.to ?? 0;
  byId('progress').hidden = overview.rounds === 0;
  byId('progress').max = Math.max(overview.rounds, 1);
  byId('progress').value = Math.min(closed, overview.rounds);
  say(byId('progress-text'), overview.rounds > 0 ? `${count(closed)} of ${count(overview.rounds)} rounds done` : `${count(closed)} rounds done; there is no end`);
  say(byId('about'), `Evenhand ${overview.software} · ${count(overview.model.parameters)} parameters · model ${overview.model.weights.slice(0, 12)} · ${fixed(overview.seconds, 2)} s spent on rounds`);
  // Not every round: a screen reader would never fall silent.
  const news = `${capital(overview.phase)}${overview.connected ? '' : ', broker disconnected'}`;
  if (news !== announced) {
    announced = news;
    say(byId('announcer'), headline(overview));
  }
}

function link(kind, text) {
  byId('live').dataset.state = kind;
  say(byId('live-text'), text);
}

// ---- fetching ----

async function fetchRounds() {
  const last = state.points.at(-1);
  const { rounds } = await get(`rounds?from=${last ? last.from : 0}`);
  if (last && rounds[0]?.from === last.from) state.points.splice(-1, 1, ...rounds);
  else state.points = last ? (await get('rounds')).rounds : rounds;
}

/// The node in the address, if any. Names need no escapes, so a malformed one is no node's.
const route = () => /^#\/node\/([\w.-]+)$/.exec(location.hash)?.[1] ?? null;

let fetched = -1;
let busy = false;
let again = false;
let timer = 0;

/// Fetches and draws the visible part, one request at a time.
async function refresh() {
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  clearTimeout(timer);
  timer = 0;
  try {
    const seen = state.overview ?? (state.overview = await get('federation'));
    const id = route();
    if (id) {
      const answer = await fetch(`/api/v1/nodes/${encodeURIComponent(id)}`);
      if (nodeView.id === id && answer.ok) nodeView.draw(await answer.json(), state.overview);
      else if (answer.status === 404) nodeView.missing();
    } else {
      const [{ nodes }, draws] = await Promise.all([get('nodes'), get('draws'), fetchRounds()]);
      Object.assign(state, { nodes, draws });
      performance.clearMeasures();
      const began = performance.now();
      panels.draw(state);
      heat.draw(state);
      everyone.draw(state);
      performance.measure('drawing', { start: began });
    }
    showOverview(state.overview);
    fetched = seen.version;
    document.body.dataset.version = String(seen.version);
  } catch (error) {
    console.warn(error);
  }
  busy = false;
  if (again) {
    again = false;
    plan();
  }
}

/// Schedules the next refresh: less often with many nodes.
function plan() {
  if (timer === 0 && !document.hidden) timer = setTimeout(refresh, state.nodes.length > 300 ? 2000 : 800);
}

function go() {
  const id = route();
  byId('overview').hidden = id !== null;
  byId('node').hidden = id === null;
  if (id !== null) nodeView.open(id);
  else if (nodeView.id !== null) {
    nodeView.id = null;
    byId('main').focus({ preventScroll: true });
  }
  refresh();
}

function listen() {
  const source = new EventSource('/api/v1/events');
  source.addEventListener('federation', (event) => {
    state.overview = JSON.parse(event.data);
    showOverview(state.overview);
    link(state.overview.connected ? 'live' : 'lost', state.overview.connected ? 'live' : 'broker disconnected');
    if (state.overview.version !== fetched) (fetched < 0 ? refresh : plan)();
  });
  source.addEventListener('error', () => {
    if (ENDS.includes(state.overview?.phase)) {
      source.close();
      link('waiting', 'coordinator stopped');
    } else {
      link('lost', 'connection lost, reconnecting');
      // A refusal ends an EventSource for good.
      if (source.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
    }
  });
}

addEventListener('hashchange', go);
document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh(); });
go();
listen();
