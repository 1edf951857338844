/** The latest requests, the newest first; each opens its explanation. */
import { copyTemplate, find, setAttribute, setShown, setText, setTime } from './dom.js';
import { Rows } from './keyed-rows.js';
import { writeClock, writeCount, writeTook } from './labels.js';

/** @import { Admin, Answer } from './admin-client.js' */
/** @import { Events, RequestOutcome, RequestRow, RequestsPage } from './api-types.ts' */

const KEPT = 100;
const ASKED = 50;

export class Requests {
  #admin;
  #rows;
  #panel = find(document, '#requests', HTMLElement);
  #count = find(this.#panel, '[data-count]', HTMLElement);
  #empty = find(this.#panel, '[data-empty]', HTMLElement);
  #outcome = find(this.#panel, '[data-outcome]', HTMLSelectElement);
  #pause = find(this.#panel, '[data-pause]', HTMLButtonElement);
  /** @type {RequestRow[]} */
  #requests = [];
  /** Come since the rows were last let move. */
  #newer = 0;
  /** Come, and told only by their number. */
  #untold = 0;
  #paused = false;
  /** @type {string | undefined} */
  #problem;
  #loads = 0;

  /**
   * @param {Admin} admin
   * @param {(id: string) => void} explain
   */
  constructor(admin, explain) {
    this.#admin = admin;
    /** @type {Rows<RequestRow>} */
    this.#rows = new Rows(
      find(this.#panel, '[data-rows]', HTMLElement),
      ({ id }) => id,
      (request) => makeRow(request, explain),
    );
    this.#outcome.addEventListener('change', () => {
      this.#requests = [];
      this.#rows.show([], true);
      void this.load();
    });
    this.#pause.addEventListener('click', () => {
      this.#paused = !this.#paused;
      setAttribute(this.#pause, 'aria-pressed', String(this.#paused));
      this.#pause.blur();
      this.draw();
    });
  }

  /** Those that came before somebody looked. */
  async load() {
    this.#loads += 1;
    const loading = this.#loads;
    const query = new URLSearchParams({ limit: String(ASKED) });
    if (this.#outcome.value !== '') query.set('outcome', this.#outcome.value);
    /** @type {Answer<RequestsPage>} */
    const answer = await this.#admin.read(`/api/requests?${query}`);
    if (loading !== this.#loads) return;
    this.#problem = answer.ok ? undefined : answer.why;
    if (answer.ok) this.#merge(answer.data.requests);
    this.draw();
  }

  /** @param {Events['requests']} heard */
  add({ requests, more }) {
    const wanted = requests.filter(({ outcome }) => this.#outcome.value === '' || outcome === this.#outcome.value);
    this.#newer += wanted.length;
    this.#untold += more;
    this.#merge(wanted);
  }

  draw() {
    if (!this.#paused && !this.#rows.isHeld) {
      this.#newer = 0;
      this.#rows.show(this.#requests);
    }
    setText(this.#count, this.#problem ?? this.#writeCount());
    setShown(this.#empty, this.#requests.length === 0);
    const filtered = this.#outcome.value !== '';
    setText(
      this.#empty,
      filtered ? 'None of the latest came to this.' : 'No request yet. Point a client at the proxy, and it shows here.',
    );
  }

  #writeCount() {
    const newer = `${writeCount(this.#newer)} newer`;
    if (this.#newer > 0) return `${this.#paused ? 'paused' : 'held while you are here'}, ${newer}`;
    if (this.#paused) return 'paused';
    return this.#untold > 0 ? `the newest ${this.#requests.length}, sampled` : `the newest ${this.#requests.length}`;
  }

  /** @param {readonly RequestRow[]} requests */
  #merge(requests) {
    const known = new Map([...requests, ...this.#requests].map((request) => [request.id, request]));
    this.#requests = [...known.values()].toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, KEPT);
  }
}

/**
 * @param {RequestRow} request
 * @param {(id: string) => void} explain
 */
function makeRow(request, explain) {
  const row = copyTemplate('request-template');
  setTime(find(row, '[data-at]', HTMLElement), request.at, writeClock(request.at));
  const open = find(row, '[data-open]', HTMLButtonElement);
  setText(open, `${request.method} ${request.path}`);
  setAttribute(open, 'title', `${request.method} ${request.path}\nExplain ${request.id}`);
  open.addEventListener('click', () => explain(request.id));
  setText(find(row, '[data-status]', HTMLElement), request.status > 0 ? String(request.status) : '–');
  setAttribute(find(row, '.state', HTMLElement), 'data-mood', moodOfOutcome(request.outcome));
  const outcome = find(row, '[data-outcome]', HTMLElement);
  setText(outcome, writeOutcome(request.outcome));
  if (request.reason !== null) setAttribute(outcome, 'title', request.reason);
  setText(find(row, '[data-attempts]', HTMLElement), request.attempts === 0 ? 'never' : `${request.attempts}×`);
  setText(find(row, '[data-took]', HTMLElement), writeTook(request.tookSeconds));
  return { row, fill: () => undefined };
}

/** @type {Readonly<Record<RequestOutcome, string>>} */
export const OUTCOMES = {
  forwarded: 'forwarded',
  recovered: 'recovered',
  checked: 'let pass',
  preflight: 'preflight',
  refused: 'refused',
  queue_timeout: 'waited in vain',
  upstream_error: 'upstream error',
  unknown: 'unknown',
  client_gone: 'client gone',
};

/** @param {RequestOutcome} outcome */
export function writeOutcome(outcome) {
  return OUTCOMES[outcome] ?? outcome;
}

/** @param {RequestOutcome} outcome */
export function moodOfOutcome(outcome) {
  if (['forwarded', 'recovered', 'checked', 'preflight'].includes(outcome)) return 'well';
  return outcome === 'unknown' || outcome === 'upstream_error'
    ? 'trouble'
    : outcome === 'client_gone'
      ? 'quiet'
      : 'wary';
}
