/** The timeline: rate cuts, blocks, reloads and operator actions, newest first; also changes of state, if the user wants them. */
import { copyTemplate, find, setAttribute, setShown, setText, setTime } from './dom/dom.js';
import { readChoice, storeChoice } from './dom/stored-choices.js';
import { KeyedRows } from './keyed-rows.js';
import { formatClock } from './text/labels.js';

/** @import { AdminClient, Answer } from './admin-client.js' */
/** @import { TimelineEvent } from './api-types.ts' */
/** @import { Severity } from './text/labels.js' */

/** Rows that are shown. */
const MAX_EVENTS = 200;
const STATES_KEY = 'tidegate-state-changes';

const CRITICAL_KINDS = new Set(['blocked', 'overload', 'drain', 'failing', 'expired']);
const WARNING_KINDS = new Set(['cut', 'endpoint', 'store', 'pin', 'expires']);
const RECOVERY_KINDS = new Set(['recovered', 'unblocked', 'renewed']);

export class TimelineList {
  #admin;
  #rows;
  #panel = find(document, '#timeline', HTMLElement);
  #count = find(this.#panel, '[data-count]', HTMLElement);
  #empty = find(this.#panel, '[data-empty]', HTMLElement);
  #states = find(this.#panel, '[data-states]', HTMLInputElement);
  /** @type {TimelineEvent[]} newest first */
  #events = [];
  /** @type {string | undefined} */
  #problem;

  /** @param {AdminClient} admin */
  constructor(admin) {
    this.#admin = admin;
    /** @type {KeyedRows<TimelineEvent>} */
    this.#rows = new KeyedRows(find(this.#panel, '[data-rows]', HTMLElement), ({ id }) => id, makeRow);
    this.#states.checked = readChoice(STATES_KEY) === 'shown';
    this.#states.addEventListener('change', () => {
      storeChoice(STATES_KEY, this.#states.checked ? 'shown' : 'hidden');
      this.#show(true);
      if (this.#states.checked) void this.load();
    });
  }

  async load() {
    /** @type {Answer<{readonly events: readonly TimelineEvent[]}>} */
    const answer = await this.#admin.get(
      `/api/timeline?limit=${MAX_EVENTS}${this.#states.checked ? '' : '&exclude=state'}`,
    );
    this.#problem = answer.ok ? undefined : answer.why;
    if (answer.ok) this.#merge(answer.data.events);
    this.draw();
  }

  /** @param {TimelineEvent} event */
  add(event) {
    this.#merge([event]);
  }

  draw() {
    this.#show(false);
    setText(this.#count, this.#problem ?? '');
  }

  /** @param {boolean} force show them even while the rows are held */
  #show(force) {
    const wanted = this.#events.filter((event) => this.#states.checked || !isStateChange(event));
    this.#rows.show(wanted.slice(0, MAX_EVENTS), force);
    setShown(this.#empty, wanted.length === 0);
  }

  /** @param {readonly TimelineEvent[]} events */
  #merge(events) {
    const known = new Map([...this.#events, ...events].map((event) => [event.id, event]));
    const sorted = [...known.values()].toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at));
    // Changes of state are counted apart: in a storm, they would displace all others also while they are hidden.
    let [states, others] = [0, 0];
    this.#events = sorted.filter((event) => (isStateChange(event) ? ++states : ++others) <= MAX_EVENTS);
  }
}

/** @param {TimelineEvent} event */
function isStateChange({ kind }) {
  return kind === 'state';
}

/**
 * @param {TimelineEvent['kind']} kind
 * @returns {Severity}
 */
function severityOf(kind) {
  if (CRITICAL_KINDS.has(kind)) return 'critical';
  if (WARNING_KINDS.has(kind)) return 'warning';
  return RECOVERY_KINDS.has(kind) ? 'ok' : 'muted';
}

/** @param {TimelineEvent} event */
function makeRow({ kind, upstream }) {
  const row = copyTemplate('event-template');
  setAttribute(row, 'data-severity', severityOf(kind));
  setText(find(row, '[data-kind]', HTMLElement), kind);
  const [name, textElement] = [document.createElement('b'), document.createElement('span')];
  if (upstream !== null) name.textContent = `${upstream}: `;
  find(row, '[data-text]', HTMLElement).append(name, textElement);
  const when = find(row, '[data-at]', HTMLElement);
  /** @param {TimelineEvent} event */
  const fill = ({ at, text }) => {
    setTime(when, at, formatClock(at));
    setText(textElement, text);
  };
  return { row, fill };
}
