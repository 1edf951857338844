/** The idempotency keys, oldest first. They are not part of the event stream: the table asks the API for them. */
import { copyTemplate, find, setAttribute, setDisabled, setShown, setText, setTime } from './dom/dom.js';
import { useSingleTabStop } from './dom/single-tab-stop.js';
import { KeyedRows } from './keyed-rows.js';
import { formatCount, formatMoment } from './text/labels.js';

/** @import { AdminClient, Answer } from './admin-client.js' */
/** @import { OperatorActions } from './operator-actions.js' */
/** @import { PageModel } from './page-model.js' */
/** @import { KeyRow, KeysPage } from './api-types.ts' */
/** @import { Severity } from './text/labels.js' */

/** Each query searches all keys. */
const REFRESH_INTERVAL_MS = 5000;
/** A page uses at most this part of the time of a store, which a search for a key may take for seconds. */
const SEARCH_SHARE = 0.1;
/** Between the last key stroke and the query. */
const TYPING_DELAY_MS = 250;
const PAGE_SIZE = 50;

/** @type {Readonly<Record<KeyRow['state'], {readonly label: string, readonly severity: Severity, readonly meaning: string}>>} */
const STATES = {
  in_progress: {
    label: 'in progress',
    severity: 'muted',
    meaning: 'A request has the key or waits for it, or a response is being sent.',
  },
  unresolved: {
    label: 'unresolved',
    severity: 'warning',
    meaning: 'The write may have taken effect, and no response confirms it.',
  },
  answered: { label: 'answered', severity: 'ok', meaning: 'The upstream has answered the write.' },
};

const IN_USE = 'The key is in use: it can be forgotten when its requests have ended.';

const NONE = 'No key is in this state.';
const NONE_SUCH = 'No key has this id, or is this key.';
const NONE_SEARCHED = 'None of the keys that were searched matches.';

export class KeysTable {
  #admin;
  #rows;
  #panel = find(document, '#keys', HTMLElement);
  #state = find(this.#panel, '[data-state]', HTMLSelectElement);
  #search = find(this.#panel, '[data-search]', HTMLInputElement);
  #count = find(this.#panel, '[data-count]', HTMLElement);
  #empty = find(this.#panel, '[data-empty]', HTMLElement);
  /** @type {KeysPage | undefined} */
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
   * @param {OperatorActions} actions
   */
  constructor(model, admin, actions) {
    this.#admin = admin;
    const rows = find(this.#panel, '[data-rows]', HTMLElement);
    /** @param {KeyRow} key */
    const forget = (key) => actions.forgetKey(key, () => this.#choose(0));
    /** @type {KeyedRows<KeyRow>} */
    this.#rows = new KeyedRows(
      rows,
      ({ id }) => id,
      () => makeRow(model, forget),
    );
    useSingleTabStop(rows);
    this.#state.addEventListener('change', () => this.#choose(0));
    this.#search.addEventListener('input', () => this.#choose(TYPING_DELAY_MS));
  }

  /** Loads the keys now, and again from time to time. To be called whenever the page is connected. */
  load() {
    this.#schedule(0);
  }

  draw() {
    const keys = this.#results?.keys ?? [];
    this.#rows.show(keys);
    setText(this.#count, this.#problem ?? this.#formatCount());
    setShown(this.#empty, this.#results !== undefined && keys.length === 0);
    setText(this.#empty, this.#results?.truncated === true ? NONE_SEARCHED : this.#searched === '' ? NONE : NONE_SUCH);
  }

  get #searched() {
    return this.#search.value.trim();
  }

  #formatCount() {
    if (this.#results === undefined) return '';
    const { total, matching, keys, truncated } = this.#results;
    const found =
      total === null ? `${formatCount(matching)} found` : `${formatCount(matching)} of ${formatCount(total)} known`;
    const order = keys.length < matching ? `the ${keys.length} oldest` : 'oldest first';
    return `${found}, ${order}${truncated ? '; Redis has more than one request searches' : ''}`;
  }

  /** @param {number} delayMs */
  #choose(delayMs) {
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
    if (queryNumber !== this.#queryNumber) return;
    if (answer?.ok === true) {
      this.#results = answer.data;
      this.#rows.show(answer.data.keys, this.#isChoiceNew);
      this.#isChoiceNew = false;
    }
    this.#problem = answer?.ok === false ? answer.why : undefined;
    this.#timer = setTimeout(() => void this.#query(), Math.max(REFRESH_INTERVAL_MS, took / SEARCH_SHARE));
    this.draw();
  }

  /**
   * The text of the search may be a key, or the beginning of an id.
   * @returns {Promise<Answer<KeysPage>>}
   */
  async #fetch() {
    const searched = this.#searched;
    if (searched === '') return this.#get(this.#state.value === '' ? {} : { state: this.#state.value });
    const [byKey, byId] = await Promise.all([this.#get({ key: searched }), this.#get({ id: searched.slice(0, 200) })]);
    if (!byKey.ok || !byId.ok) return byKey.ok ? byId : byKey;
    const keys = [...byKey.data.keys, ...byId.data.keys];
    const matching = byKey.data.matching + byId.data.matching;
    const truncated = byKey.data.truncated || byId.data.truncated;
    return { ok: true, data: { total: byKey.data.total, matching, truncated, keys } };
  }

  /**
   * @param {Readonly<Record<string, string>>} query
   * @returns {Promise<Answer<KeysPage>>}
   */
  #get(query) {
    const parameters = new URLSearchParams({ ...query, order: 'oldest', limit: String(PAGE_SIZE) });
    return this.#admin.get(`/api/keys?${parameters}`);
  }
}

/**
 * @param {PageModel} model
 * @param {(key: KeyRow) => void} forget
 */
function makeRow(model, forget) {
  const row = copyTemplate('key-template');
  /** @param {string} name */
  const cell = (name) => find(row, `[data-${name}]`, HTMLElement);
  const [id, upstream, state, sent] = [cell('id'), cell('upstream'), cell('state'), cell('sent')];
  const [endpoint, sentKey] = [cell('endpoint'), cell('sent-key')];
  const [requests, responses, final] = [cell('requests'), cell('responses'), cell('final')];
  const stateCell = find(row, '.state', HTMLElement);
  const button = find(row, '[data-forget]', HTMLButtonElement);
  /** @type {KeyRow | undefined} */
  let key;
  button.addEventListener('click', () => key && forget(key));
  return {
    row,
    /** @param {KeyRow} shown */
    fill: (shown) => {
      key = shown;
      const { label, severity, meaning } = STATES[shown.state];
      setText(id, shown.id);
      setText(upstream, shown.upstream);
      setAttribute(stateCell, 'data-severity', severity);
      setText(state, label);
      setAttribute(state, 'title', meaning);
      if (shown.firstSentAt === null) setText(sent, '–');
      else setTime(sent, shown.firstSentAt, formatMoment(shown.firstSentAt, model.now));
      setText(endpoint, shown.endpoint ?? '–');
      setText(sentKey, shown.upstreamKey ?? '–');
      setText(requests, formatCount(shown.requests));
      setText(responses, formatCount(shown.responses));
      setText(final, formatCount(shown.finalFor));
      setDisabled(button, model.status?.actions.reason ?? (shown.state === 'in_progress' ? IN_USE : null));
      setAttribute(button, 'aria-label', `Forget key ${shown.id}`);
    },
  };
}
