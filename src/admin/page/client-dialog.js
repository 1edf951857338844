/** The details of one client. */
import { copyTemplate, find, setAttribute, setDisabled, setShown, setText, setTime } from './dom/dom.js';
import { useSingleTabStop } from './dom/single-tab-stop.js';
import { fillDefinitionList } from './dom/definition-list.js';
import { formatClient, formatClientState } from './text/client-labels.js';
import { outcomeLabel, outcomeSeverity } from './text/outcome-labels.js';
import {
  secondsUntil,
  formatClock,
  formatCount,
  formatPercent,
  formatRateLabel,
  formatTimeSpan,
} from './text/labels.js';

/** @import { AdminClient, Answer } from './admin-client.js' */
/** @import { PageModel } from './page-model.js' */
/** @import { ClientRow, RequestRow, RequestsPage } from './api-types.ts' */

const LATEST_REQUESTS = 20;

export class ClientDialog {
  #model;
  #admin;
  #explain;
  #dialog = find(document, '#client', HTMLDialogElement);
  #rows = find(this.#dialog, '[data-rows]', HTMLElement);
  #empty = find(this.#dialog, '[data-empty]', HTMLElement);
  #reset = find(this.#dialog, '[data-reset]', HTMLButtonElement);
  #problem = find(this.#dialog, '[data-problem]', HTMLElement);
  /** @type {ClientRow | undefined} */
  #client;

  /**
   * @param {PageModel} model
   * @param {AdminClient} admin
   * @param {{readonly reset: (key: string) => void, readonly explain: (id: string) => void}} on
   */
  constructor(model, admin, { reset, explain }) {
    this.#model = model;
    this.#admin = admin;
    this.#explain = explain;
    useSingleTabStop(this.#rows);
    this.#reset.addEventListener('click', () => {
      if (this.#client !== undefined) reset(this.#client.key);
    });
    this.#dialog.addEventListener('close', () => (this.#client = undefined));
  }

  /** @param {ClientRow} client */
  open(client) {
    this.#client = client;
    setText(find(this.#dialog, 'h2', HTMLElement), `Client ${formatClient(client)}`);
    setShown(this.#problem, false);
    setShown(this.#empty, false);
    this.#rows.replaceChildren();
    this.draw();
    this.#dialog.showModal();
    void this.#load(client);
  }

  draw() {
    if (this.#client === undefined) return;
    setDisabled(this.#reset, this.#model.status?.actions.reason ?? null);
    const { key, upstream } = this.#client;
    this.#client = this.#model.clients.rows.find((row) => row.key === key && row.upstream === upstream) ?? this.#client;
    const client = this.#client;
    const { now } = this.#model;
    const left = secondsUntil(client.nextSlot, now);
    fillDefinitionList(find(this.#dialog, '[data-facts]', HTMLElement), [
      ...(client.name === null ? [] : [/** @type {const} */ (['key', client.key])]),
      ['upstream', client.upstream],
      ['state', formatClientState(client, now)],
      ['allowance', formatPercent(client.allowance)],
      ['demand', formatRateLabel(client.demandPerSecond)],
      ['share of the rate', formatRateLabel(client.sharePerSecond)],
      ['waiting', formatCount(client.queued)],
      ['retry at', left === undefined ? '–' : `in ${formatTimeSpan(left)}`],
      ['last seen', client.lastSeen === null ? '–' : formatClock(client.lastSeen)],
    ]);
  }

  /** @param {ClientRow} client */
  async #load(client) {
    const query = new URLSearchParams({ client: client.key, limit: String(LATEST_REQUESTS) });
    /** @type {Answer<RequestsPage>} */
    const answer = await this.#admin.get(`/api/requests?${query}`);
    if (this.#client?.key !== client.key) return;
    if (!answer.ok) setText(this.#problem, answer.why);
    setShown(this.#problem, !answer.ok);
    const requests = answer.ok ? answer.data.requests : [];
    setShown(this.#empty, answer.ok && requests.length === 0);
    this.#rows.replaceChildren(...requests.map((request) => this.#makeRow(request)));
  }

  /** @param {RequestRow} request */
  #makeRow(request) {
    const row = copyTemplate('event-template');
    setTime(find(row, '[data-at]', HTMLElement), request.at, formatClock(request.at));
    setAttribute(row, 'data-severity', outcomeSeverity(request.outcome, request.status));
    setText(find(row, '[data-kind]', HTMLElement), outcomeLabel(request.outcome));
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'link';
    button.textContent = `${request.method} ${request.path}`;
    button.addEventListener('click', () => this.#explain(request.id));
    find(row, '[data-text]', HTMLElement).append(button, ` ${request.status}`);
    return row;
  }
}
