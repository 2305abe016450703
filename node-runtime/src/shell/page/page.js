// The owner's page: asks for page.json and draws it. Addresses are relative: Home Assistant serves the page under a path.

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 230;
const byId = (id) => document.getElementById(id);
const known = (value) => value !== null && value !== undefined;

function make(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const minus = (text) => text.replace('-', '−');
const number = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3));
const percent = (share) => (known(share) ? `${minus((100 * share).toFixed(1))} %` : '–');
const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
const date = (ms) => new Date(ms).toLocaleDateString([], { day: 'numeric', month: 'short' });
const day = (ms) => new Date(ms).toLocaleDateString([], { weekday: 'short' });

/// Round numbers from zero, or the least value, to the greatest.
function ticks(low, high) {
  const raw = (high - low) / 4 || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw);
  const found = [];
  for (let at = Math.floor(low / step); at * step < high + step * 0.999; at += 1) found.push(at * step);
  return found;
}

/// Curves over time: each is a list of [milliseconds, value]; a band is a list of [milliseconds, low, high].
function chart(place, label, unit, curves, band, now) {
  const all = [...curves.flatMap(({ points }) => points.map(([, value]) => value)), ...band.flatMap(([, low, high]) => [low, high])];
  const times = [...curves.flatMap(({ points }) => points.map(([at]) => at)), ...band.map(([at]) => at)];
  if (all.length < 2) {
    place.replaceChildren(Object.assign(document.createElement('p'), { textContent: 'Nothing to show yet.' }));
    return;
  }
  const width = Math.max(260, place.clientWidth);
  const levels = ticks(Math.min(0, ...all), Math.max(...all));
  const [low, high] = [levels[0], levels.at(-1)];
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const [left, right, top, bottom] = [44, width - 6, 18, HEIGHT - 22];
  const x = (at) => left + ((at - from) / (to - from || 1)) * (right - left);
  const y = (value) => bottom - ((value - low) / (high - low || 1)) * (bottom - top);
  const drawing = make('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: 'img', 'aria-label': label });
  for (const level of levels) {
    drawing.append(make('line', { class: 'grid', x1: left, x2: right, y1: y(level), y2: y(level) }),
      make('text', { x: left - 6, y: y(level) + 4, 'text-anchor': 'end' }, minus(String(Number(level.toPrecision(6))))));
  }
  drawing.append(make('text', { x: 2, y: 11 }, unit));
  const hours = [1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 672].find((step) => (to - from) / 3600000 / step <= width / 75) ?? 8760;
  const first = new Date(from);
  first.setHours(Math.ceil((first.getHours() + (first.getMinutes() > 0 ? 1 : 0)) / hours) * hours, 0, 0, 0);
  for (let at = first.getTime(); at <= to; at += hours * 3600000) {
    const midnight = new Date(at).getHours() === 0;
    const half = 22;
    if (x(at) < left + half || x(at) > right - half) continue;
    drawing.append(make('line', { class: 'grid', x1: x(at), x2: x(at), y1: top, y2: bottom }),
      make('text', { x: x(at), y: HEIGHT - 6, 'text-anchor': 'middle' }, hours > 96 ? date(at) : midnight ? day(at) : clock(at)));
  }
  if (band.length > 1) {
    const upper = band.map(([at, , value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
    const lower = band.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).reverse();
    drawing.append(make('polygon', { class: 'band', points: [...upper, ...lower].join(' ') }));
  }
  if (now > from && now < to) drawing.append(make('line', { class: 'now', x1: x(now), x2: x(now), y1: top, y2: bottom }));
  for (const { kind, points } of curves) {
    const path = points.map(([at, value], index) => `${index === 0 ? 'M' : 'L'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`);
    drawing.append(make('path', { class: kind, d: path.join('') }));
  }
  place.replaceChildren(drawing);
}

function tile(name, value, note) {
  const [term, detail, small] = ['dt', 'dd', 'small'].map((tag) => document.createElement(tag));
  term.textContent = name;
  detail.textContent = value;
  small.textContent = note;
  detail.append(small);
  const pair = document.createElement('div');
  pair.append(term, detail);
  return pair;
}

const WHY = {
  Exploring: 'Everybody takes part while contributions are measured.', Drawn: 'The last draw fell on this home.',
  NotDrawn: 'The last draw fell on others.', Absent: 'This home was away when the draw was made.',
  Newcomer: 'This home has joined and is being measured.',
};

function draw({ unit, status, outcomes, ends_ms: ends }) {
  const { account, day_ahead: ahead, source, readings } = status;
  document.title = `${status.node} · Evenhand`;
  byId('name').textContent = status.node;
  const refused = status.refused?.[1] === 'Unknown';
  const fault = refused ? 'The federation does not admit this node; ask its operator.'
    : !status.connected ? 'No connection to the federation; forecasts go on.'
      : status.phase === 'Finished' ? 'The federation has ended; forecasts go on.' : '';
  byId('state').textContent = fault || `in ${status.federation}, round ${status.round}`;
  byId('state').className = fault ? 'alert' : '';

  const vector = ahead?.vector;
  const step = (vector?.step_s ?? 900) * 1000;
  const middles = ends.map((end) => end - step / 2);
  const levels = vector?.levels ?? [];
  const column = (level) => levels.findIndex((known) => Math.abs(known - level) < 1e-6);
  const [low, median, high] = [0.1, 0.5, 0.9].map(column);
  const values = vector?.values ?? [];
  const past = outcomes.filter(({ for_ms: end }) => ends.length === 0 || end > ends[0] - 12 * 3600000);
  const measured = past.map(({ for_ms: end, measured: value }) => [end - step / 2, value]);
  chart(byId('forecast'), 'Forecast of the next day with its band', unit, [
    { kind: 'measured', points: measured },
    { kind: 'median', points: median < 0 ? [] : values.map((row, index) => [middles[index], row[median]]) },
  ], low < 0 || high < 0 ? [] : values.map((row, index) => [middles[index], row[low], row[high]]), ends[0] - step);
  const collecting = ahead?.collecting;
  byId('next').textContent = collecting
    ? `Collecting: ${collecting.steps} of ${collecting.needed} steps are here${known(collecting.first_forecast_ms) ? `, the first forecast comes about ${clock(collecting.first_forecast_ms)}` : ''}.`
    : status.forecast ? `${number(status.forecast.value)} ${unit} until ${clock(status.forecast.for_ms)}.` : 'No forecast yet.';

  chart(byId('outcomes'), 'Forecasts and what was measured', unit, [
    { kind: 'median', points: outcomes.map(({ for_ms: end, forecast }) => [end - step / 2, forecast]) },
    { kind: 'measured', points: outcomes.map(({ for_ms: end, measured: value }) => [end - step / 2, value]) },
  ], [], -1);
  byId('error').textContent = known(status.mean_absolute_error)
    ? `Off by ${number(status.mean_absolute_error)} ${unit} on average, over ${status.forecasts_evaluated} forecasts.` : 'No forecast has been compared yet.';

  const overall = ahead?.overall;
  const best = overall ? `against the best naive forecast (${overall.best_naive}), four weeks` : 'no forecasts judged yet';
  byId('tiles').replaceChildren(
    tile('Skill', percent(overall?.skill), best),
    tile('Within the band', percent(overall?.coverage), 'of the values; 80 % is right'),
    tile('Standing', account ? number(account.standing) : '–', account ? `± ${number(account.standing_error)}: what this home gives to the model` : 'not measured yet'),
    tile('Chance', account ? percent(account.sampling_probability) : '–', 'of each draw of the latest model'),
    tile('Last drawn', known(account?.last_drawn) ? `round ${account.last_drawn}` : 'not yet', account ? `${account.drawn} times; the model here is ${account.staleness} rounds old` : ''),
  );
  byId('why').textContent = account ? WHY[account.why] ?? '' : '';

  const faults = [
    known(source.failing) ? `It fails: ${source.failing}.` : '',
    known(source.silent_since_ms) ? `Silent since ${day(source.silent_since_ms)} ${clock(source.silent_since_ms)}.` : '',
    known(source.kept_out) ? `Some readings are kept out: ${source.kept_out}.` : '',
    known(source.misfit) ? `${source.misfit}.` : '',
  ].filter(Boolean);
  const newest = known(status.newest_reading_ms) ? `the newest of ${day(status.newest_reading_ms)} ${clock(status.newest_reading_ms)}` : 'none yet';
  byId('readings').textContent = [`${readings.accepted} readings, ${newest}.`, ...faults].join(' ');
  byId('readings').className = faults.length > 0 ? 'alert' : '';
  document.body.dataset.drawn = String(status.written_ms);
}

let shown = null;
async function refresh() {
  try {
    const answer = await fetch('page.json', { cache: 'no-store' });
    if (answer.ok) {
      shown = await answer.json();
      draw(shown);
    }
  } catch {
    byId('state').textContent = 'The node does not answer.';
    byId('state').className = 'alert';
  }
  setTimeout(refresh, 30000);
}
addEventListener('resize', () => { if (shown) draw(shown); });
refresh();
