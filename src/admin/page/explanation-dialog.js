/** The explanation of one request: verdict, facts and steps. */
import { find, setShown, setText } from './dom/dom.js';
import { fillDefinitionList } from './dom/definition-list.js';
import { outcomeLabel } from './text/outcome-labels.js';
import { formatClock } from './text/labels.js';

/** @import { AdminClient, Answer } from './admin-client.js' */
/** @import { ExplanationResponse } from './api-types.ts' */

export class ExplanationDialog {
  #admin;
  #dialog = find(document, '#explanation', HTMLDialogElement);
  #title = find(this.#dialog, 'h2', HTMLElement);
  #verdict = find(this.#dialog, '[data-verdict]', HTMLElement);
  #facts = find(this.#dialog, '[data-facts]', HTMLElement);
  #steps = find(this.#dialog, '[data-steps]', HTMLElement);
  #problem = find(this.#dialog, '[data-problem]', HTMLElement);
  #requestId = '';

  /** @param {AdminClient} admin */
  constructor(admin) {
    this.#admin = admin;
  }

  /** @param {string} id */
  async open(id) {
    this.#requestId = id;
    setText(this.#title, `Request ${id}`);
    setText(this.#verdict, 'Loading…');
    setShown(this.#problem, false);
    fillDefinitionList(this.#facts, []);
    this.#steps.replaceChildren();
    if (!this.#dialog.open) this.#dialog.showModal();
    /** @type {Answer<ExplanationResponse>} */
    const answer = await this.#admin.get(`/explain/${encodeURIComponent(id)}`);
    if (this.#requestId !== id) return;
    setText(this.#verdict, answer.ok ? answer.data.verdict : '');
    setShown(this.#problem, !answer.ok);
    if (answer.ok) this.#show(answer.data);
    else setText(this.#problem, answer.why);
  }

  /** @param {ExplanationResponse} explanation */
  #show({ at, client, route, upstream, method, path, outcome, status, steps }) {
    setText(this.#title, `${method} ${path}`);
    fillDefinitionList(this.#facts, [
      ['id', this.#requestId],
      ['arrived', formatClock(at)],
      ['client', client.identifiedBy === null ? client.key : `${client.key} (by ${client.identifiedBy})`],
      ['route', route],
      ['upstream', upstream],
      ['outcome', outcomeLabel(outcome)],
      ['status', status > 0 ? String(status) : 'none'],
    ]);
    this.#steps.replaceChildren(...steps.map(makeStep));
  }
}

/** @param {ExplanationResponse['steps'][number]} step */
function makeStep({ at, what, text }) {
  const item = document.createElement('li');
  for (const [className = '', content = ''] of [
    ['at', `+${at.toFixed(3)} s`],
    ['what', what],
    ['text', text],
  ]) {
    const part = document.createElement('span');
    part.className = className;
    part.textContent = content;
    item.append(part);
  }
  return item;
}
