/** The process itself: phase, config, store, notices, and totals of all requests. */
import { find, setAttribute, setDisabled, setText } from './dom/dom.js';
import { OUTCOME_LABELS } from './text/outcome-labels.js';
import { formatMode } from './text/state-meanings.js';
import { KeyedRows } from './keyed-rows.js';
import {
  formatClock,
  formatCount,
  describeNotices,
  formatRateLabel,
  formatTimeSpan,
  formatLatency,
} from './text/labels.js';

/** @import { PageModel } from './page-model.js' */
/** @import { ApiRequestOutcome, ProcessStatus } from './api-types.ts' */

const PHASE_SEVERITIES = /** @type {const} */ ({ starting: 'warning', ready: 'ok', draining: 'critical' });

export class ProcessPanel {
  #model;
  #phase = find(document, '#phase', HTMLElement);
  #drain = find(document, '#drain', HTMLButtonElement);
  #token = find(document, '#token', HTMLButtonElement);
  #notices;
  #outcomes;

  /** @param {PageModel} model */
  constructor(model) {
    this.#model = model;
    /** @type {KeyedRows<ReturnType<typeof describeNotices>[number]>} */
    this.#notices = new KeyedRows(find(document, '#notices', HTMLElement), ({ text }) => text, makeNotice, 'always');
    /** @type {KeyedRows<readonly [ApiRequestOutcome, number]>} */
    this.#outcomes = new KeyedRows(
      find(document, '#outcomes', HTMLElement),
      ([outcome]) => outcome,
      makeOutcome,
      'always',
    );
  }

  draw() {
    const { status, now } = this.#model;
    const phaseText = find(this.#phase, '[data-text]', HTMLElement);
    if (this.#model.isStale) {
      // The last known phase would be read as the present one.
      setAttribute(this.#phase, 'data-severity', 'critical');
      setText(phaseText, 'not connected');
    }
    if (status === undefined) return;
    if (!this.#model.isStale) {
      setAttribute(this.#phase, 'data-severity', PHASE_SEVERITIES[status.phase]);
      setText(phaseText, status.phase);
    }
    setDisabled(this.#drain, status.phase === 'draining' ? 'Tidegate is draining already.' : status.actions.reason);
    setDisabled(this.#token, status.actions.reason);
    for (const [name, text] of factsOf(status, now)) {
      setText(find(document, `[data-fact='${name}']`, HTMLElement), text);
    }
    const { perSecond, failedPerSecond, inFlight, p50Seconds, p99Seconds, outcomes } = status.requests;
    for (const [name, text] of [
      ['perSecond', formatRateLabel(perSecond)],
      ['failed', formatRateLabel(failedPerSecond)],
      ['inFlight', formatCount(inFlight)],
      ['p50', formatLatency(p50Seconds)],
      ['p99', formatLatency(p99Seconds)],
    ]) {
      setText(find(document, `[data-total='${name}']`, HTMLElement), text ?? '');
    }
    setAttribute(
      find(document, "[data-total='failed']", HTMLElement),
      'data-severity',
      failedPerSecond > 0 ? 'critical' : undefined,
    );
    const names = /** @type {ApiRequestOutcome[]} */ (Object.keys(OUTCOME_LABELS));
    const entries = names.map((name) => /** @type {const} */ ([name, outcomes[name] ?? 0]));
    this.#outcomes.show(entries.filter(([name, count]) => count > 0 || name === 'forwarded'));
    this.#notices.show(describeNotices(status));
  }
}

/**
 * @param {ProcessStatus} status
 * @param {number} now
 * @returns {readonly (readonly [name: string, text: string])[]}
 */
function factsOf({ startedAt, version, mode, workers, store, config, actions }, now) {
  const { loadedAt, lastReload } = config;
  return [
    ['up', formatTimeSpan((now - Date.parse(startedAt)) / 1000)],
    ['version', version],
    ['mode', formatMode(mode)],
    ['actions', actions.allowed ? 'with the token' : 'disabled: no admin.token'],
    ['workers', String(workers)],
    ['store', store.degraded ? `${store.kind}, degraded` : store.kind],
    [
      'config',
      lastReload?.ok === false ? `reload failed at ${formatClock(lastReload.at)}` : `loaded ${formatClock(loadedAt)}`,
    ],
  ];
}

/** @param {ReturnType<typeof describeNotices>[number]} notice */
function makeNotice({ severity, text }) {
  const row = document.createElement('li');
  const [mark, textElement] = [document.createElement('span'), document.createElement('span')];
  mark.className = 'mark';
  mark.ariaHidden = 'true';
  textElement.textContent = text;
  row.dataset['severity'] = severity;
  row.append(mark, textElement);
  return { row, fill: () => undefined };
}

/**
 * Without a severity: a count since the start does not say whether there is a problem now.
 * @param {readonly [ApiRequestOutcome, number]} entry
 */
function makeOutcome([outcome]) {
  const row = document.createElement('li');
  /** @param {readonly [ApiRequestOutcome, number]} entry */
  const fill = ([, count]) => setText(row, `${formatCount(count)} ${OUTCOME_LABELS[outcome]}`);
  return { row, fill };
}
