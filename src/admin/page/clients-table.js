/** The clients, those in most trouble first. Unfiltered they come with the stream; filtered, they are asked for. */
import { copyTemplate, find, setAttribute, setShown, setText, setTime } from './dom.js';
import { Rows } from './keyed-rows.js';
import { secondsTo, writeClock, writeCount, writePart, writeRate, writeSpan } from './labels.js';

/** @import { Admin } from './admin-client.js' */
/** @import { Model } from './page-model.js' */
/** @import { ClientRow, ClientState, ClientsPage } from './api-types.ts' */

const STATES = /** @type {const} */ (['held', 'backoff', 'cooldown', 'restoring', 'normal']);
/** Milliseconds between two askings while a filter is set, and after the last key was typed. */
const ASKED = 2000;
const TYPED = 250;
const PAGE = 50;
const MOST = 500;

export class Clients {
  #model;
  #admin;
  #rows;
  #panel = find(document, '#clients', HTMLElement);
  #search = find(this.#panel, '[data-search]', HTMLInputElement);
  #count = find(this.#panel, '[data-count]', HTMLElement);
  #empty = find(this.#panel, '[data-empty]', HTMLElement);
  #more = find(this.#panel, '[data-more]', HTMLButtonElement);
  /** @type {Map<ClientState | '', {readonly button: HTMLButtonElement, readonly text: HTMLElement}>} */
  #chips = new Map();
  /** @type {ClientState | ''} */
  #state = '';
  #limit = PAGE;
  /** @type {ClientsPage | undefined} what was answered to the filter that is set */
  #found;
  /** @type {string | undefined} */
  #problem;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #asked = 0;
  /** The filter is another, and its rows are not shown yet. */
  #isNew = false;

  /**
   * @param {Model} model
   * @param {Admin} admin
   * @param {{readonly open: (client: ClientRow) => void, readonly reset: (key: string) => void}} on
   */
  constructor(model, admin, { open, reset }) {
    this.#model = model;
    this.#admin = admin;
    /** @type {Rows<ClientRow>} */
    this.#rows = new Rows(
      find(this.#panel, '[data-rows]', HTMLElement),
      ({ key, upstream }) => `${key} ${upstream}`,
      () => makeRow(model, open, reset),
    );
    const place = find(this.#panel, '[data-states]', HTMLElement);
    for (const state of /** @type {const} */ (['', ...STATES])) {
      const button = document.createElement('button');
      const text = document.createElement('span');
      button.type = 'button';
      button.append(text);
      button.addEventListener('click', () => this.#choose(this.#state === state ? '' : state));
      place.append(button);
      this.#chips.set(state, { button, text });
    }
    this.#choose('');
    this.#search.addEventListener('input', () => this.#ask(TYPED));
    this.#more.addEventListener('click', () => {
      this.#limit = Math.min(MOST, this.#limit * 2);
      this.#ask(0);
    });
  }

  draw() {
    const { status, clients } = this.#model;
    if (status === undefined) return;
    const { tracked, byState } = status.clients;
    for (const [state, { text }] of this.#chips) {
      setText(text, state === '' ? `all ${writeCount(tracked)}` : `${state} ${writeCount(byState[state])}`);
    }
    const filtered = this.#isFiltered;
    const shown = filtered ? (this.#found?.clients ?? []) : clients.rows;
    const matching = filtered ? (this.#found?.matching ?? 0) : clients.total;
    if (!filtered || this.#found !== undefined) {
      this.#rows.show(shown, this.#isNew);
      this.#isNew = false;
    }
    const asking = filtered && this.#found === undefined ? 'asking…' : undefined;
    setText(
      this.#count,
      this.#problem ??
        asking ??
        `${writeCount(shown.length)} of ${writeCount(matching)}${filtered ? ' that match' : ''}, by trouble`,
    );
    setShown(this.#empty, shown.length === 0 && (!filtered || this.#found !== undefined));
    setText(this.#empty, filtered ? 'No client matches.' : 'No client yet. Those who send requests show here.');
    setShown(this.#more, shown.length < matching && this.#limit < MOST);
  }

  get #isFiltered() {
    return this.#state !== '' || this.#search.value.trim() !== '' || this.#limit > PAGE;
  }

  /** @param {ClientState | ''} state */
  #choose(state) {
    this.#state = state;
    for (const [each, { button }] of this.#chips) setAttribute(button, 'aria-pressed', String(each === state));
    this.#limit = PAGE;
    this.#ask(0);
  }

  /** @param {number} wait */
  #ask(wait) {
    clearTimeout(this.#timer);
    this.#asked += 1;
    this.#isNew = true;
    this.#found = undefined;
    this.#problem = undefined;
    if (this.#isFiltered) this.#timer = setTimeout(() => void this.#find(), wait);
    this.draw();
  }

  async #find() {
    const asking = this.#asked;
    const query = new URLSearchParams({ limit: String(this.#limit) });
    if (this.#state !== '') query.set('state', this.#state);
    const search = this.#search.value.trim();
    if (search !== '') query.set('search', search);
    /** @type {import('./admin-client.js').Answer<ClientsPage> | undefined} */
    const answer = document.hidden ? undefined : await this.#admin.read(`/api/clients?${query}`);
    if (asking !== this.#asked) return;
    if (answer?.ok === true) this.#found = answer.data;
    this.#problem = answer?.ok === false ? answer.why : undefined;
    this.#timer = setTimeout(() => void this.#find(), ASKED);
    this.draw();
  }
}

/**
 * @param {Model} model
 * @param {(client: ClientRow) => void} open
 * @param {(key: string) => void} reset
 */
function makeRow(model, open, reset) {
  const row = copyTemplate('client-template');
  /** @param {string} name */
  const place = (name) => find(row, `[data-${name}]`, HTMLElement);
  const [key, upstream, state, allowance] = [place('open'), place('upstream'), place('state'), place('allowance')];
  const [demand, share, queued, slot, seen] = [
    place('demand'),
    place('share'),
    place('queued'),
    place('slot'),
    place('seen'),
  ];
  const mood = find(row, '.state', HTMLElement);
  const measure = place('measure');
  const resetButton = place('reset');
  let part = -1;
  /** @type {ClientRow | undefined} */
  let client;
  key.addEventListener('click', () => client && open(client));
  resetButton.addEventListener('click', () => client && reset(client.key));
  return {
    row,
    /** @param {ClientRow} shown */
    fill: (shown) => {
      client = shown;
      setText(key, shown.key);
      setAttribute(key, 'title', shown.key);
      setText(upstream, shown.upstream);
      setAttribute(mood, 'data-mood', moodOfClient(shown.state));
      setText(state, writeClientState(shown, model.now));
      setText(allowance, writePart(shown.allowance));
      if (part !== shown.allowance) measure.style.transform = `scaleX(${shown.allowance})`;
      part = shown.allowance;
      setText(demand, writeRate(shown.demandPerSecond));
      setText(share, shown.sharePerSecond === null ? 'no limit' : writeRate(shown.sharePerSecond));
      setText(queued, writeCount(shown.queued));
      const left = secondsTo(shown.nextSlot, model.now);
      setText(slot, left === undefined ? '–' : `in ${writeSpan(left)}`);
      if (shown.lastSeen === null) setText(seen, '–');
      else setTime(seen, shown.lastSeen, writeClock(shown.lastSeen));
      setAttribute(resetButton, 'aria-label', `Reset client ${shown.key}`);
    },
  };
}

/** @param {ClientState} state */
export function moodOfClient(state) {
  if (state === 'held') return 'trouble';
  return state === 'normal' ? 'well' : 'wary';
}

/**
 * @param {ClientRow} client
 * @param {number} now
 */
export function writeClientState({ state, heldUntil, calmAt }, now) {
  const left = secondsTo(state === 'held' ? heldUntil : state === 'normal' ? null : calmAt, now);
  return left === undefined ? state : `${state}, ${writeSpan(left)}`;
}
