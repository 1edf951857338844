/** What happened: cuts, blocks, reloads and what operators did, the newest first. */
import { copyTemplate, find, setAttribute, setShown, setText, setTime } from './dom.js';
import { Rows } from './keyed-rows.js';
import { writeClock } from './labels.js';

/** @import { Admin, Answer } from './admin-client.js' */
/** @import { TimelineEvent } from './api-types.ts' */

const KEPT = 200;

const TROUBLE = new Set(['blocked', 'overload', 'drain']);
const WARY = new Set(['cut', 'endpoint', 'store', 'pin']);

export class Timeline {
  #admin;
  #rows;
  #panel = find(document, '#timeline', HTMLElement);
  #count = find(this.#panel, '[data-count]', HTMLElement);
  #empty = find(this.#panel, '[data-empty]', HTMLElement);
  /** @type {TimelineEvent[]} */
  #events = [];
  /** @type {string | undefined} */
  #problem;

  /** @param {Admin} admin */
  constructor(admin) {
    this.#admin = admin;
    /** @type {Rows<TimelineEvent>} */
    this.#rows = new Rows(find(this.#panel, '[data-rows]', HTMLElement), ({ id }) => id, makeRow);
  }

  async load() {
    /** @type {Answer<{readonly events: readonly TimelineEvent[]}>} */
    const answer = await this.#admin.read(`/api/timeline?limit=${KEPT}`);
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
    this.#events = [...known.values()].toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, KEPT);
  }
}

/** @param {TimelineEvent} event */
function makeRow({ kind, upstream }) {
  const row = copyTemplate('event-template');
  setAttribute(row, 'data-mood', TROUBLE.has(kind) ? 'trouble' : WARY.has(kind) ? 'wary' : 'quiet');
  setText(find(row, '[data-kind]', HTMLElement), kind);
  const [name, told] = [document.createElement('b'), document.createElement('span')];
  if (upstream !== null) name.textContent = `${upstream}: `;
  find(row, '[data-text]', HTMLElement).append(name, told);
  const when = find(row, '[data-at]', HTMLElement);
  /** @param {TimelineEvent} event */
  const fill = ({ at, text }) => {
    setTime(when, at, writeClock(at));
    setText(told, text);
  };
  return { row, fill };
}
