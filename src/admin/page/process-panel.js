/** The process itself: its life, its config, its store, and what all requests came to. */
import { find, setAttribute, setText } from './dom.js';
import { moodOfOutcome, OUTCOMES } from './requests-table.js';
import { Rows } from './keyed-rows.js';
import { writeClock, writeCount, writeNotices, writeRate, writeSpan, writeTook } from './labels.js';

/** @import { Model } from './page-model.js' */
/** @import { RequestOutcome, Status } from './api-types.ts' */

const PHASES = /** @type {const} */ ({ starting: 'wary', ready: 'well', draining: 'trouble' });

export class Process {
  #model;
  #phase = find(document, '#phase', HTMLElement);
  #drain = find(document, '#drain', HTMLButtonElement);
  #notices;
  #outcomes;

  /** @param {Model} model */
  constructor(model) {
    this.#model = model;
    /** @type {Rows<ReturnType<typeof writeNotices>[number]>} */
    this.#notices = new Rows(find(document, '#notices', HTMLElement), ({ text }) => text, makeNotice, 'always');
    /** @type {Rows<readonly [RequestOutcome, number]>} */
    this.#outcomes = new Rows(find(document, '#outcomes', HTMLElement), ([outcome]) => outcome, makeOutcome, 'always');
  }

  draw() {
    const { status, now } = this.#model;
    if (status === undefined) return;
    setAttribute(this.#phase, 'data-mood', PHASES[status.phase]);
    setText(find(this.#phase, '[data-text]', HTMLElement), status.phase);
    this.#drain.disabled = status.phase === 'draining';
    for (const [name, text] of factsOf(status, now)) {
      setText(find(document, `[data-fact='${name}']`, HTMLElement), text);
    }
    const { perSecond, inFlight, p50Seconds, p99Seconds, outcomes } = status.requests;
    for (const [name, text] of [
      ['perSecond', writeRate(perSecond)],
      ['inFlight', writeCount(inFlight)],
      ['p50', writeTook(p50Seconds)],
      ['p99', writeTook(p99Seconds)],
    ]) {
      setText(find(document, `[data-total='${name}']`, HTMLElement), text ?? '');
    }
    const names = /** @type {RequestOutcome[]} */ (Object.keys(OUTCOMES));
    const counted = names.map((name) => /** @type {const} */ ([name, outcomes[name] ?? 0]));
    this.#outcomes.show(counted.filter(([name, count]) => count > 0 || name === 'forwarded'));
    this.#notices.show(writeNotices(status));
  }
}

/**
 * @param {Status} status
 * @param {number} now
 * @returns {readonly (readonly [name: string, text: string])[]}
 */
function factsOf({ startedAt, version, mode, workers, store, config }, now) {
  const { loadedAt, lastReload } = config;
  return [
    ['up', writeSpan((now - Date.parse(startedAt)) / 1000)],
    ['version', version],
    ['mode', mode],
    ['workers', String(workers)],
    ['store', store.degraded ? `${store.kind}, degraded` : store.kind],
    [
      'config',
      lastReload?.ok === false ? `reload failed at ${writeClock(lastReload.at)}` : `of ${writeClock(loadedAt)}`,
    ],
  ];
}

/** @param {ReturnType<typeof writeNotices>[number]} notice */
function makeNotice({ mood, text }) {
  const row = document.createElement('li');
  const [mark, told] = [document.createElement('span'), document.createElement('span')];
  mark.className = 'mark';
  mark.ariaHidden = 'true';
  told.textContent = text;
  row.dataset['mood'] = mood;
  row.append(mark, told);
  return { row, fill: () => undefined };
}

/** @param {readonly [RequestOutcome, number]} counted */
function makeOutcome([outcome]) {
  const row = document.createElement('li');
  if (moodOfOutcome(outcome) === 'trouble') row.dataset['mood'] = 'trouble';
  /** @param {readonly [RequestOutcome, number]} counted */
  const fill = ([, count]) => setText(row, `${writeCount(count)} ${OUTCOMES[outcome]}`);
  return { row, fill };
}
