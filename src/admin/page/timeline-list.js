/** The timeline: rate cuts, blocks, reloads and operator actions, newest first. */
import { copyTemplate, find, setAttribute, setShown, setText, setTime } from './dom/dom.js';
import { KeyedRows } from './keyed-rows.js';
import { formatClock } from './text/labels.js';

/** @import { AdminClient, Answer } from './admin-client.js' */
/** @import { TimelineEvent } from './api-types.ts' */

const MAX_EVENTS = 200;

const CRITICAL_KINDS = new Set(['blocked', 'overload', 'drain', 'failing', 'expired']);
const WARNING_KINDS = new Set(['cut', 'endpoint', 'store', 'pin', 'expires']);

export class TimelineList {
  #admin;
  #rows;
  #panel = find(document, '#timeline', HTMLElement);
  #count = find(this.#panel, '[data-count]', HTMLElement);
  #empty = find(this.#panel, '[data-empty]', HTMLElement);
  /** @type {TimelineEvent[]} */
  #events = [];
  /** @type {string | undefined} */
  #problem;

  /** @param {AdminClient} admin */
  constructor(admin) {
    this.#admin = admin;
    /** @type {KeyedRows<TimelineEvent>} */
    this.#rows = new KeyedRows(find(this.#panel, '[data-rows]', HTMLElement), ({ id }) => id, makeRow);
  }

  async load() {
    /** @type {Answer<{readonly events: readonly TimelineEvent[]}>} */
    const answer = await this.#admin.get(`/api/timeline?limit=${MAX_EVENTS}`);
    this.#problem = answer.ok ? undefined : answer.why;
    if (answer.ok) this.#merge(answer.data.events);
    this.draw();
  }

  /** @param {TimelineEvent} event */
  add(event) {
    this.#merge([event]);
  }

  draw() {
    this.#rows.show(this.#events);
    setText(this.#count, this.#problem ?? '');
    setShown(this.#empty, this.#events.length === 0);
  }

  /** @param {readonly TimelineEvent[]} events */
  #merge(events) {
    const known = new Map([...this.#events, ...events].map((event) => [event.id, event]));
    this.#events = [...known.values()].toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, MAX_EVENTS);
  }
}

/** @param {TimelineEvent} event */
function makeRow({ kind, upstream }) {
  const row = copyTemplate('event-template');
  setAttribute(
    row,
    'data-severity',
    CRITICAL_KINDS.has(kind) ? 'critical' : WARNING_KINDS.has(kind) ? 'warning' : 'muted',
  );
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
