/** The story of one request. */
import { find, setShown, setText } from './dom.js';
import { showFacts } from './definition-list.js';
import { writeClock } from './labels.js';

/** @import { Admin, Answer } from './admin-client.js' */
/** @import { Explanation } from './api-types.ts' */

export class ExplanationSheet {
  #admin;
  #dialog = find(document, '#explanation', HTMLDialogElement);
  #title = find(this.#dialog, 'h2', HTMLElement);
  #verdict = find(this.#dialog, '[data-verdict]', HTMLElement);
  #facts = find(this.#dialog, '[data-facts]', HTMLElement);
  #steps = find(this.#dialog, '[data-steps]', HTMLElement);
  #problem = find(this.#dialog, '[data-problem]', HTMLElement);
  #wanted = '';

  /** @param {Admin} admin */
  constructor(admin) {
    this.#admin = admin;
  }

  /** @param {string} id */
  async open(id) {
    this.#wanted = id;
    setText(this.#title, `Request ${id}`);
    setText(this.#verdict, 'Asking…');
    setShown(this.#problem, false);
    showFacts(this.#facts, []);
    this.#steps.replaceChildren();
    if (!this.#dialog.open) this.#dialog.showModal();
    /** @type {Answer<Explanation>} */
    const answer = await this.#admin.read(`/explain/${encodeURIComponent(id)}`);
    if (this.#wanted !== id) return;
    setText(this.#verdict, answer.ok ? answer.data.verdict : '');
    setShown(this.#problem, !answer.ok);
    if (answer.ok) this.#show(answer.data);
    else setText(this.#problem, answer.why);
  }

  /** @param {Explanation} explanation */
  #show({ at, client, route, upstream, method, path, outcome, status, steps }) {
    setText(this.#title, `${method} ${path}`);
    showFacts(this.#facts, [
      ['id', this.#wanted],
      ['arrived', writeClock(at)],
      ['client', client.identifiedBy === null ? client.key : `${client.key} (by ${client.identifiedBy})`],
      ['route', route],
      ['upstream', upstream],
      ['outcome', outcome],
      ['status', status > 0 ? String(status) : 'none'],
    ]);
    this.#steps.replaceChildren(...steps.map(makeStep));
  }
}

/** @param {Explanation['steps'][number]} step */
function makeStep({ at, what, text }) {
  const item = document.createElement('li');
  for (const [name, shown] of [
    ['at', `+${at.toFixed(3)} s`],
    ['what', what],
    ['text', text],
  ]) {
    const part = document.createElement('span');
    part.className = name ?? '';
    part.textContent = shown ?? '';
    item.append(part);
  }
  return item;
}
