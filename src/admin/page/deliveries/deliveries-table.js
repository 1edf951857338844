/** The stored deliveries, newest first, page by page. They are not part of the event stream: the table asks the API for them. */
import { copyTemplate, find, setAttribute, setDisabled, setShown, setText, setTime } from '../dom/dom.js';
import { fillDefinitionList } from '../dom/definition-list.js';
import { useSingleTabStop } from '../dom/single-tab-stop.js';
import { KeyedRows } from '../keyed-rows.js';
import {
  DELIVERY_STATE_MEANINGS,
  deliverySeverity,
  describeStored,
  formatLastResult,
  formatNextOrEnd,
} from '../text/delivery-labels.js';
import { formatCount, formatMoment } from '../text/labels.js';

/** @import { AdminClient, Answer } from '../admin-client.js' */
/** @import { PageModel } from '../page-model.js' */
/** @import { DeliveriesPage, DeliveryRow } from '../api-types.ts' */

const REFRESH_INTERVAL_MS = 5000;
/** A page uses at most this part of the time of a store. */
const QUERY_SHARE = 0.1;
/** Between the last key stroke and the query. */
const TYPING_DELAY_MS = 250;
const PAGE_SIZE = 50;
/** Pages that *Newer* goes back; then it shows the newest. */
const MAX_PAGES_BACK = 100;
/** Names of routes that are suggested. */
const MAX_ROUTES = 50;

export class DeliveriesTable {
  #model;
  #admin;
  #rows;
  #panel = find(document, '#deliveries', HTMLElement);
  #state = find(this.#panel, '[data-state]', HTMLSelectElement);
  #route = find(this.#panel, '[data-route]', HTMLInputElement);
  #routes = find(this.#panel, 'datalist', HTMLDataListElement);
  #totals = find(this.#panel, '[data-totals]', HTMLElement);
  #count = find(this.#panel, '[data-count]', HTMLElement);
  #empty = find(this.#panel, '[data-empty]', HTMLElement);
  #newer = find(this.#panel, '[data-newer]', HTMLButtonElement);
  #older = find(this.#panel, '[data-older]', HTMLButtonElement);
  /** @type {DeliveriesPage | undefined} */
  #results;
  /** @type {readonly string[]} the last ids of the pages before this one; none: the newest page */
  #before = [];
  /** @type {string | undefined} */
  #problem;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #queryNumber = 0;
  #isShown = false;
  /** The user has asked for other rows, which are not shown yet. */
  #isChoiceNew = false;

  /**
   * @param {PageModel} model
   * @param {AdminClient} admin
   * @param {(delivery: DeliveryRow) => void} open
   */
  constructor(model, admin, open) {
    this.#model = model;
    this.#admin = admin;
    const rows = find(this.#panel, '[data-rows]', HTMLElement);
    /** @type {KeyedRows<DeliveryRow>} */
    this.#rows = new KeyedRows(
      rows,
      ({ id }) => id,
      () => makeRow(model, open),
    );
    useSingleTabStop(rows);
    this.#state.addEventListener('change', () => this.#choose([], 0));
    this.#route.addEventListener('input', () => this.#choose([], TYPING_DELAY_MS));
    this.#newer.addEventListener('click', () => this.#choose(this.#before.slice(0, -1), 0));
    this.#older.addEventListener('click', () => {
      // Until the page that was chosen before is shown, `next` is that of another one.
      const next = this.#isChoiceNew ? null : (this.#results?.next ?? null);
      if (next !== null) this.#choose([...this.#before, next].slice(-MAX_PAGES_BACK), 0);
    });
  }

  /** Loads the page now, and again from time to time. To be called whenever the page is connected, and after a change. */
  load() {
    if (this.#isShown) this.#schedule(0);
  }

  draw() {
    const stored = this.#model.status?.deliveries ?? null;
    setShown(this.#panel, stored !== null);
    if (this.#isShown !== (stored !== null)) {
      this.#isShown = stored !== null;
      this.load();
    }
    if (stored === null) return;
    fillDefinitionList(this.#totals, describeStored(stored, this.#model.now));
    const deliveries = this.#results?.deliveries ?? [];
    this.#rows.show(deliveries);
    setText(this.#count, this.#problem ?? this.#formatCount());
    setShown(this.#empty, this.#results !== undefined && deliveries.length === 0);
    const isFiltered = this.#state.value !== '' || this.#route.value.trim() !== '' || this.#before.length > 0;
    setText(this.#empty, isFiltered ? 'No delivery is in this state and of this route.' : 'No deliveries are stored.');
  }

  #formatCount() {
    if (this.#results === undefined) return '';
    const { length } = this.#results.deliveries;
    const pages = this.#before.length;
    return pages === 0 ? `newest ${length}` : `${length} older, page ${formatCount(pages + 1)}`;
  }

  /**
   * @param {readonly string[]} before
   * @param {number} delayMs
   */
  #choose(before, delayMs) {
    this.#before = before;
    this.#isChoiceNew = true;
    this.#schedule(delayMs);
  }

  /** @param {number} delayMs */
  #schedule(delayMs) {
    clearTimeout(this.#timer);
    this.#queryNumber += 1;
    this.#timer = setTimeout(() => void this.#query(), delayMs);
  }

  async #query() {
    const queryNumber = this.#queryNumber;
    const startedAt = performance.now();
    const answer = document.hidden ? undefined : await this.#fetch();
    const took = performance.now() - startedAt;
    if (queryNumber !== this.#queryNumber || !this.#isShown) return;
    if (answer?.ok === true) this.#showPage(answer.data);
    this.#problem = answer?.ok === false ? answer.why : undefined;
    this.#timer = setTimeout(() => void this.#query(), Math.max(REFRESH_INTERVAL_MS, took / QUERY_SHARE));
    this.draw();
  }

  /** @returns {Promise<Answer<DeliveriesPage>>} */
  #fetch() {
    const query = new URLSearchParams({ order: 'newest', limit: String(PAGE_SIZE) });
    const [state, route, after] = [this.#state.value, this.#route.value.trim(), this.#before.at(-1)];
    if (state !== '') query.set('state', state);
    if (route !== '') query.set('route', route);
    if (after !== undefined) query.set('after', after);
    return this.#admin.get(`/api/deliveries?${query}`);
  }

  /** @param {DeliveriesPage} page */
  #showPage(page) {
    this.#results = page;
    this.#rows.show(page.deliveries, this.#isChoiceNew);
    this.#isChoiceNew = false;
    this.#suggestRoutes(page.deliveries);
    this.#enablePages(page.next !== null);
  }

  /** @param {boolean} hasOlder */
  #enablePages(hasOlder) {
    const hasNewer = this.#before.length > 0;
    const focused = document.activeElement;
    setDisabled(this.#newer, hasNewer ? null : 'These are the newest.');
    setDisabled(this.#older, hasOlder ? null : 'These are the oldest.');
    // A disabled button loses the focus, and with it the place of a keyboard user.
    if (focused === this.#older && !hasOlder) this.#newer.focus();
    if (focused === this.#newer && !hasNewer) this.#older.focus();
  }

  /** @param {readonly DeliveryRow[]} deliveries */
  #suggestRoutes(deliveries) {
    const known = new Set(Array.from(this.#routes.options, ({ value }) => value));
    for (const { route } of deliveries) {
      if (known.size >= MAX_ROUTES || known.has(route)) continue;
      known.add(route);
      this.#routes.append(new Option(route, route));
    }
  }
}

/**
 * @param {PageModel} model
 * @param {(delivery: DeliveryRow) => void} open
 */
function makeRow(model, open) {
  const row = copyTemplate('delivery-template');
  /** @param {string} name */
  const cell = (name) => find(row, `[data-${name}]`, HTMLElement);
  const [accepted, state, attempts, next] = [cell('accepted'), cell('state'), cell('attempts'), cell('next')];
  const [last, event] = [cell('last'), cell('event')];
  const stateCell = find(row, '.state', HTMLElement);
  const button = find(row, '[data-open]', HTMLButtonElement);
  /** @type {DeliveryRow | undefined} */
  let delivery;
  button.addEventListener('click', () => delivery && open(delivery));
  return {
    row,
    /** @param {DeliveryRow} shown */
    fill: (shown) => {
      delivery = shown;
      setTime(accepted, shown.acceptedAt, formatMoment(shown.acceptedAt, model.now));
      setText(button, shown.route);
      setAttribute(button, 'title', `${shown.route}\nOpen delivery ${shown.id}`);
      setAttribute(button, 'aria-label', `${shown.route}, delivery ${shown.id}`);
      setAttribute(stateCell, 'data-severity', deliverySeverity(shown));
      setText(state, shown.state);
      setAttribute(state, 'title', DELIVERY_STATE_MEANINGS[shown.state]);
      setText(attempts, formatCount(shown.attempts));
      const { time, text } = formatNextOrEnd(shown, model.now);
      if (time === null) setText(next, text);
      else setTime(next, time, text);
      setText(last, formatLastResult(shown));
      setText(event, shown.eventId ?? '–');
      setAttribute(event, 'title', shown.eventId ?? undefined);
    },
  };
}
