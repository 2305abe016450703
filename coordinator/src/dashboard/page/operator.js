// The operator's commands. The token stays in this page's memory.

import { byId, plain, say } from './dom.js';

export class Operator {
  #token = '';

  constructor(changed) {
    this.changed = changed;
    const panel = byId('operator');
    const button = byId('operate');
    button.addEventListener('click', () => {
      panel.hidden = !panel.hidden;
      button.setAttribute('aria-expanded', String(!panel.hidden));
      if (!panel.hidden && !this.unlocked) byId('token').focus();
    });
    byId('token-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#unlock(byId('token').value.trim());
      byId('token').value = '';
    });
    byId('lock').addEventListener('click', () => this.#unlock(''));
    for (const command of document.querySelectorAll('[data-command]')) {
      command.addEventListener('click', () => this.#send(command.dataset.command));
    }
  }

  get unlocked() {
    return this.#token !== '';
  }

  /// Only what would do something can be clicked.
  fit(phase) {
    const over = phase === 'finished' || phase === 'failed';
    const useless = { pause: over || phase === 'paused', resume: phase !== 'paused', 're-explore': over };
    for (const command of document.querySelectorAll('[data-command]')) command.disabled = useless[command.dataset.command] ?? false;
  }

  /// Asks for confirmation first: a removal is permanent.
  remove(id) {
    const dialog = byId('confirm');
    say(byId('confirm-text'), `Remove ${id} from the federation for good? Its record stays.`);
    dialog.addEventListener('close', () => {
      if (dialog.returnValue === 'yes') this.#send('remove', { node: id });
    }, { once: true });
    dialog.returnValue = '';
    dialog.showModal();
  }

  #unlock(token) {
    this.#token = token;
    byId('token-form').hidden = this.unlocked;
    byId('commands').hidden = !this.unlocked;
    say(byId('operator-note'), '');
    (this.unlocked ? document.querySelector('[data-command]:not(:disabled)') ?? byId('lock') : byId('token')).focus();
    this.changed();
  }

  async #send(command, body) {
    const note = byId('operator-note');
    try {
      const answer = await fetch(`/api/v1/commands/${command}`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${this.#token}`, 'Content-Type': 'application/json' },
        body: body ? JSON.stringify(body) : undefined,
      });
      const reply = await answer.json();
      if (answer.status === 401) {
        this.#unlock('');
        say(note, 'That is not the operator’s token.');
      } else {
        say(note, answer.ok ? `${plain(command)}: accepted` : reply.error);
      }
    } catch {
      say(note, 'No answer from the coordinator.');
    }
  }
}
