/** The latest requests, newest first. Each row opens the explanation of its request. */
import { copyTemplate, find, setAttribute, setShown, setText, setTime } from './dom/dom.js';
import { useSingleTabStop } from './dom/single-tab-stop.js';
import { KeyedRows } from './keyed-rows.js';
import { formatClock, formatCount, formatLatency } from './text/labels.js';
import { OUTCOME_LABELS, outcomeLabel, outcomeSeverity } from './text/outcome-labels.js';

/** @import { AdminClient, Answer } from './admin-client.js' */
/** @import { StreamEvents, RequestRow, RequestsPage } from './api-types.ts' */

const MAX_ROWS = 100;
const PAGE_SIZE = 50;
/** The first digits of a client's hash tell clients apart. */
const CLIENT_DIGITS = 8;

export class RequestsTable {
  #admin;
  #rows;
  #panel = find(document, '#requests', HTMLElement);
  #count = find(this.#panel, '[data-count]', HTMLElement);
  #empty = find(this.#panel, '[data-empty]', HTMLElement);
  #outcome = find(this.#panel, '[data-outcome]', HTMLSelectElement);
  #pause = find(this.#panel, '[data-pause]', HTMLButtonElement);
  /** @type {RequestRow[]} */
  #requests = [];
  /** Requests that arrived while the rows were held in place. */
  #newer = 0;
  /** Requests that the stream counted but did not list. */
  #unlisted = 0;
  #paused = false;
  /** @type {string | undefined} */
  #problem;
  #loads = 0;

  /**
   * @param {AdminClient} admin
   * @param {(id: string) => void} explain
   */
  constructor(admin, explain) {
    this.#admin = admin;
    /** @type {KeyedRows<RequestRow>} */
    this.#rows = new KeyedRows(
      find(this.#panel, '[data-rows]', HTMLElement),
      ({ id }) => id,
      (request) => makeRow(request, explain),
    );
    useSingleTabStop(find(this.#panel, '[data-rows]', HTMLElement));
    for (const [value, label] of Object.entries(OUTCOME_LABELS)) this.#outcome.append(new Option(label, value));
    this.#outcome.addEventListener('change', () => {
      this.#requests = [];
      this.#rows.show([], true);
      void this.load();
    });
    this.#pause.addEventListener('click', () => {
      this.#paused = !this.#paused;
      setText(this.#pause, this.#paused ? 'Resume' : 'Pause');
      this.#pause.blur();
      this.draw();
    });
  }

  /** Loads the requests that ended before the page was connected. */
  async load() {
    this.#loads += 1;
    const loading = this.#loads;
    const query = new URLSearchParams({ limit: String(PAGE_SIZE) });
    if (this.#outcome.value !== '') query.set('outcome', this.#outcome.value);
    /** @type {Answer<RequestsPage>} */
    const answer = await this.#admin.get(`/api/requests?${query}`);
    if (loading !== this.#loads) return;
    this.#problem = answer.ok ? undefined : answer.why;
    if (answer.ok) this.#merge(answer.data.requests);
    this.draw();
  }

  /** @param {StreamEvents['requests']} event */
  add({ requests, more }) {
    const wanted = requests.filter(({ outcome }) => this.#outcome.value === '' || outcome === this.#outcome.value);
    this.#newer += wanted.length;
    this.#unlisted += more;
    this.#merge(wanted);
  }

  draw() {
    if (!this.#paused && !this.#rows.isHeld) {
      this.#newer = 0;
      this.#rows.show(this.#requests);
    }
    setText(this.#count, this.#problem ?? this.#formatCount());
    setShown(this.#empty, this.#requests.length === 0);
    const filtered = this.#outcome.value !== '';
    setText(
      this.#empty,
      filtered
        ? 'No recent request has this outcome.'
        : 'No requests yet. Send a request through the proxy to see it here.',
    );
  }

  #formatCount() {
    const newer = `${formatCount(this.#newer)} newer`;
    if (this.#newer > 0) return `${this.#paused ? 'paused' : 'paused under the pointer or focus'}, ${newer}`;
    if (this.#paused) return 'paused';
    return `newest ${this.#requests.length}${this.#unlisted > 0 ? ', sampled' : ''}`;
  }

  /** @param {readonly RequestRow[]} requests */
  #merge(requests) {
    const known = new Map([...requests, ...this.#requests].map((request) => [request.id, request]));
    this.#requests = [...known.values()].toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, MAX_ROWS);
  }
}

/**
 * @param {RequestRow} request
 * @param {(id: string) => void} explain
 */
function makeRow(request, explain) {
  const row = copyTemplate('request-template');
  setTime(find(row, '[data-at]', HTMLElement), request.at, formatClock(request.at));
  const open = find(row, '[data-open]', HTMLButtonElement);
  setText(open, `${request.method} ${request.path}`);
  setAttribute(open, 'title', `${request.method} ${request.path}\nExplain ${request.id}`);
  open.addEventListener('click', () => explain(request.id));
  const client = find(row, '[data-client]', HTMLElement);
  setText(client, request.clientName ?? (request.client === '' ? '–' : request.client.slice(0, CLIENT_DIGITS)));
  setAttribute(client, 'title', request.client);
  setText(find(row, '[data-status]', HTMLElement), request.status > 0 ? String(request.status) : '–');
  setAttribute(find(row, '.state', HTMLElement), 'data-severity', outcomeSeverity(request.outcome, request.status));
  const outcome = find(row, '[data-outcome]', HTMLElement);
  setText(outcome, outcomeLabel(request.outcome));
  if (request.reason !== null) setAttribute(outcome, 'title', request.reason);
  setText(find(row, '[data-attempts]', HTMLElement), String(request.attempts));
  setText(find(row, '[data-took]', HTMLElement), formatLatency(request.tookSeconds));
  return { row, fill: () => undefined };
}
