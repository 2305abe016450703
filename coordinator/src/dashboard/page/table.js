// The table of all nodes: sorted, searched, a page at a time.

import { count, fixed, html, number, percent, plain, say } from './dom.js';

const PAGE = 25;

export const stateOf = (node) => (node.removed !== null ? 'removed' : node.present ? 'present' : 'away');

export const stateMark = (node) =>
  html('span', { class: `state ${stateOf(node)}` }, html('i', { 'aria-hidden': 'true' }), stateOf(node));

// Name, value to sort by, what is shown, and whether the greatest comes first.
const COLUMNS = [
  { key: 'id', name: 'node', of: (n) => n.id, shown: (n) => html('a', { href: `#/node/${encodeURIComponent(n.id)}` }, n.id) },
  { key: 'state', name: 'state', of: stateOf, shown: stateMark, left: true },
  { key: 'standing', name: 'standing ψ', of: (n) => n.standing, shown: (n) => number(n.standing), down: true },
  { key: 'error', name: '± s.e.', of: (n) => n.standing_error, shown: (n) => number(n.standing_error, 3), down: true },
  { key: 'probability', name: 'probability ϱ', of: (n) => n.probability, shown: (n) => number(n.probability), down: true },
  { key: 'drawn', name: 'received', of: (n) => n.drawn, shown: (n) => count(n.drawn), down: true },
  { key: 'last', name: 'last in round', of: (n) => n.last_drawn ?? -1, shown: (n) => count(n.last_drawn), down: true },
  { key: 'staleness', name: 'waits', of: (n) => n.staleness, shown: (n) => count(n.staleness), down: true },
  { key: 'mean', name: 'mean wait', of: (n) => n.staleness_mean, shown: (n) => fixed(n.staleness_mean, 2), down: true },
  { key: 'loss', name: 'last loss', of: (n) => n.loss ?? -Infinity, shown: (n) => number(n.loss), down: true },
  { key: 'skill', name: 'skill', of: (n) => n.skill ?? -Infinity, shown: (n) => percent(n.skill), down: true },
  { key: 'response', name: 'last round', of: (n) => n.response, shown: (n) => (n.response === 'not-asked' ? plain(n.why) : plain(n.response)), left: true },
  { key: 'refused', name: 'refused', of: (n) => n.refused, shown: (n) => count(n.refused), down: true },
];

export class NodeTable {
  constructor(element, open) {
    this.open = open;
    this.nodes = [];
    this.page = 0;
    this.sort = { key: 'standing', down: true };
    this.search = html('input', { type: 'search', placeholder: 'Search nodes', 'aria-label': 'Search nodes', oninput: () => this.#turn(0) });
    this.count = html('span', { class: 'count', role: 'status' });
    this.back = html('button', { type: 'button', class: 'quiet', onclick: () => this.#turn(this.page - 1) }, 'Previous');
    this.next = html('button', { type: 'button', class: 'quiet', onclick: () => this.#turn(this.page + 1) }, 'Next');
    this.heads = COLUMNS.map((column) =>
      html('th', { scope: 'col', class: column.left ? 'left' : undefined }, html('button', { type: 'button', onclick: () => this.#order(column) }, column.name)));
    this.body = html('tbody', { onclick: (event) => this.#click(event) });
    element.replaceChildren(
      html('div', { class: 'tools' }, this.search, this.count, this.back, this.next),
      html('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Every node' },
        html('table', { class: 'nodes' }, html('caption', { class: 'unseen' }, 'Every node; the buttons in the head sort'), html('thead', {}, html('tr', {}, this.heads)), this.body)),
    );
  }

  draw({ nodes }) {
    this.nodes = nodes;
    this.#turn(this.page);
  }

  #order(column) {
    const again = this.sort.key === column.key;
    this.sort = { key: column.key, down: again ? !this.sort.down : column.down === true };
    this.#turn(0);
  }

  #click(event) {
    if (event.target.closest('a') || !getSelection().isCollapsed) return;
    const id = event.target.closest('tr')?.dataset.id;
    if (id) this.open(id);
  }

  #turn(page) {
    const wanted = this.search.value.trim().toLowerCase();
    const found = this.nodes.filter((node) => node.id.toLowerCase().includes(wanted) || stateOf(node) === wanted);
    const { of } = COLUMNS.find((column) => column.key === this.sort.key);
    const way = this.sort.down ? -1 : 1;
    found.sort((a, b) => {
      const [x, y] = [of(a), of(b)];
      return (x < y ? -way : x > y ? way : 0) || (a.id < b.id ? -1 : 1);
    });
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    this.page = Math.max(0, Math.min(page, pages - 1));
    const first = this.page * PAGE;
    const shown = found.slice(first, first + PAGE);
    const focused = document.activeElement?.closest?.('tr')?.dataset.id;
    this.body.replaceChildren(...shown.map((node) =>
      html('tr', { 'data-id': node.id }, COLUMNS.map((column, index) =>
        html(index === 0 ? 'th' : 'td', { scope: index === 0 ? 'row' : undefined, class: column.left ? 'left' : undefined }, column.shown(node))))));
    if (focused) this.body.querySelector(`tr[data-id="${CSS.escape(focused)}"] a`)?.focus({ preventScroll: true });
    COLUMNS.forEach((column, index) => {
      const mine = column.key === this.sort.key;
      if (mine) this.heads[index].setAttribute('aria-sort', this.sort.down ? 'descending' : 'ascending');
      else this.heads[index].removeAttribute('aria-sort');
    });
    say(this.count, found.length === 0 ? 'No node matches' : `${count(first + 1)}–${count(first + shown.length)} of ${count(found.length)}`);
    this.back.disabled = this.page === 0;
    this.next.disabled = this.page >= pages - 1;
  }
}
