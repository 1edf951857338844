/** The clients, most restricted first. The event stream carries the first rows; a filter or more rows need the API. */
import { copyTemplate, find, setAttribute, setDisabled, setShown, setText, setTime } from './dom/dom.js';
import { useSingleTabStop } from './dom/single-tab-stop.js';
import { KeyedRows } from './keyed-rows.js';
import { CLIENT_STATE_MEANINGS } from './text/state-meanings.js';
import { formatClientCount } from './text/client-count.js';
import { clientSeverity, formatClient, formatClientState } from './text/client-labels.js';
import {
  secondsUntil,
  formatClock,
  formatCount,
  formatPercent,
  formatRateLabel,
  formatTimeSpan,
} from './text/labels.js';

/** @import { AdminClient } from './admin-client.js' */
/** @import { PageModel } from './page-model.js' */
/** @import { ClientRow, ApiClientState, ClientsPage } from './api-types.ts' */

const STATES = /** @type {const} */ (['held', 'backoff', 'cooldown', 'restoring', 'normal']);
/** Between two queries while a filter is set. */
const REFRESH_INTERVAL_MS = 2000;
/** Between the last key stroke and the query. */
const TYPING_DELAY_MS = 250;
/** Rows until all are asked for, so that the sections below stay in view. */
const COLLAPSED_ROWS = 8;
const PAGE_SIZE = 50;
const MAX_ROWS = 500;

export class ClientsTable {
  #model;
  #admin;
  #rows;
  #panel = find(document, '#clients', HTMLElement);
  #search = find(this.#panel, '[data-search]', HTMLInputElement);
  #count = find(this.#panel, '[data-count]', HTMLElement);
  #empty = find(this.#panel, '[data-empty]', HTMLElement);
  #all = find(this.#panel, '[data-all]', HTMLButtonElement);
  #more = find(this.#panel, '[data-more]', HTMLButtonElement);
  /** @type {Map<ApiClientState | '', {readonly button: HTMLButtonElement, readonly text: HTMLElement}>} */
  #chips = new Map();
  /** @type {ApiClientState | ''} */
  #state = '';
  #limit = PAGE_SIZE;
  #isExpanded = false;
  /** @type {ClientsPage | undefined} the response to the current filter */
  #results;
  /** @type {string | undefined} */
  #problem;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #queryNumber = 0;
  /** The user has asked for other rows, which are not shown yet. */
  #isChoiceNew = false;

  /**
   * @param {PageModel} model
   * @param {AdminClient} admin
   * @param {{readonly open: (client: ClientRow) => void, readonly reset: (key: string) => void}} on
   */
  constructor(model, admin, { open, reset }) {
    this.#model = model;
    this.#admin = admin;
    /** @type {KeyedRows<ClientRow>} */
    this.#rows = new KeyedRows(
      find(this.#panel, '[data-rows]', HTMLElement),
      ({ key, upstream }) => `${key} ${upstream}`,
      () => makeRow(model, open, reset),
    );
    const container = find(this.#panel, '[data-states]', HTMLElement);
    for (const state of /** @type {const} */ (['', ...STATES])) {
      const button = document.createElement('button');
      const text = document.createElement('span');
      button.type = 'button';
      if (state !== '') button.title = CLIENT_STATE_MEANINGS[state];
      button.append(text);
      button.addEventListener('click', () => this.#choose(this.#state === state ? '' : state));
      container.append(button);
      this.#chips.set(state, { button, text });
    }
    useSingleTabStop(container);
    useSingleTabStop(find(this.#panel, '[data-rows]', HTMLElement));
    this.#choose('');
    this.#search.addEventListener('input', () => this.#scheduleQuery(TYPING_DELAY_MS));
    this.#all.addEventListener('click', () => {
      this.#isExpanded = !this.#isExpanded;
      this.#isChoiceNew = true;
      this.draw();
    });
    this.#more.addEventListener('click', () => {
      this.#limit = Math.min(MAX_ROWS, this.#limit * 2);
      this.#scheduleQuery(0);
    });
  }

  draw() {
    const { status, clients } = this.#model;
    if (status === undefined) return;
    const { tracked, distinct, byState } = status.clients;
    for (const [state, { text }] of this.#chips) {
      setText(text, state === '' ? `all ${formatCount(tracked)}` : `${state} ${formatCount(byState[state])}`);
    }
    const filtered = this.#isFiltered;
    const isLoading = this.#needsQuery && this.#results === undefined;
    const known = this.#needsQuery ? (this.#results?.clients ?? []) : clients.rows.filter((row) => this.#matches(row));
    const matching = this.#needsQuery ? (this.#results?.matching ?? 0) : filtered ? known.length : clients.total;
    const shown = this.#isExpanded ? known : known.slice(0, COLLAPSED_ROWS);
    if (!isLoading) {
      this.#rows.show(shown, this.#isChoiceNew);
      this.#isChoiceNew = false;
    }
    const counts = { clients: filtered ? null : distinct, rows: matching, shown: shown.length };
    setText(
      this.#count,
      this.#problem ??
        (isLoading ? 'loading…' : `${formatClientCount(counts)}${filtered ? ' matching' : ''}, most restricted first`),
    );
    setShown(this.#empty, shown.length === 0 && !isLoading);
    setText(
      this.#empty,
      filtered ? 'No client matches.' : 'No clients yet. Clients appear here once they send requests.',
    );
    setShown(this.#all, known.length > COLLAPSED_ROWS);
    const all = known.length < matching ? '' : 'all ';
    setText(this.#all, this.#isExpanded ? 'Show fewer' : `Show ${all}${formatCount(known.length)}`);
    setShown(this.#more, this.#isExpanded && known.length < matching && this.#limit < MAX_ROWS);
  }

  get #isFiltered() {
    return this.#state !== '' || this.#search.value.trim() !== '';
  }

  /** The event stream does not carry the rows that are asked for. */
  get #needsQuery() {
    const { rows, total } = this.#model.clients;
    return (this.#isFiltered && rows.length < total) || this.#limit > PAGE_SIZE;
  }

  /** @param {ClientRow} client */
  #matches({ state, key }) {
    const search = this.#search.value.trim().toLowerCase();
    return (this.#state === '' || state === this.#state) && key.toLowerCase().includes(search);
  }

  /** @param {ApiClientState | ''} state */
  #choose(state) {
    this.#state = state;
    for (const [each, { button }] of this.#chips) setAttribute(button, 'aria-pressed', String(each === state));
    this.#limit = PAGE_SIZE;
    this.#scheduleQuery(0);
  }

  /** @param {number} delayMs */
  #scheduleQuery(delayMs) {
    clearTimeout(this.#timer);
    this.#queryNumber += 1;
    this.#isChoiceNew = true;
    this.#results = undefined;
    this.#problem = undefined;
    if (this.#isFiltered || this.#limit > PAGE_SIZE) this.#timer = setTimeout(() => void this.#query(), delayMs);
    this.draw();
  }

  async #query() {
    const queryNumber = this.#queryNumber;
    const query = new URLSearchParams({ limit: String(this.#limit) });
    if (this.#state !== '') query.set('state', this.#state);
    const search = this.#search.value.trim();
    if (search !== '') query.set('search', search);
    /** @type {import('./admin-client.js').Answer<ClientsPage> | undefined} */
    const answer = document.hidden || !this.#needsQuery ? undefined : await this.#admin.get(`/api/clients?${query}`);
    if (queryNumber !== this.#queryNumber) return;
    if (answer?.ok === true) this.#results = answer.data;
    this.#problem = answer?.ok === false ? answer.why : undefined;
    this.#timer = setTimeout(() => void this.#query(), REFRESH_INTERVAL_MS);
    this.draw();
  }
}

/**
 * @param {PageModel} model
 * @param {(client: ClientRow) => void} open
 * @param {(key: string) => void} reset
 */
function makeRow(model, open, reset) {
  const row = copyTemplate('client-template');
  /** @param {string} name */
  const cell = (name) => find(row, `[data-${name}]`, HTMLElement);
  const [key, upstream, state, allowance] = [cell('open'), cell('upstream'), cell('state'), cell('allowance')];
  const [demand, share, queued, slot, seen] = [
    cell('demand'),
    cell('share'),
    cell('queued'),
    cell('slot'),
    cell('seen'),
  ];
  const stateCell = find(row, '.state', HTMLElement);
  const measure = cell('measure');
  const resetButton = find(row, '[data-reset]', HTMLButtonElement);
  let drawnAllowance = -1;
  /** @type {ClientRow | undefined} */
  let client;
  key.addEventListener('click', () => client && open(client));
  resetButton.addEventListener('click', () => client && reset(client.key));
  return {
    row,
    /** @param {ClientRow} shown */
    fill: (shown) => {
      client = shown;
      setText(key, formatClient(shown));
      setAttribute(key, 'title', shown.key);
      setText(upstream, shown.upstream);
      setAttribute(stateCell, 'data-severity', clientSeverity(shown.state));
      setText(state, formatClientState(shown, model.now));
      setAttribute(state, 'title', CLIENT_STATE_MEANINGS[shown.state]);
      setText(allowance, formatPercent(shown.allowance));
      if (drawnAllowance !== shown.allowance) measure.style.transform = `scaleX(${shown.allowance})`;
      drawnAllowance = shown.allowance;
      setText(demand, formatRateLabel(shown.demandPerSecond));
      setText(share, shown.sharePerSecond === null ? 'no limit' : formatRateLabel(shown.sharePerSecond));
      setText(queued, formatCount(shown.queued));
      const left = secondsUntil(shown.nextSlot, model.now);
      setText(slot, left === undefined ? '–' : `in ${formatTimeSpan(left)}`);
      if (shown.lastSeen === null) setText(seen, '–');
      else setTime(seen, shown.lastSeen, formatClock(shown.lastSeen));
      setDisabled(resetButton, model.status?.actions.reason ?? null);
      setAttribute(resetButton, 'aria-label', `Reset client ${formatClient(shown)}`);
    },
  };
}
