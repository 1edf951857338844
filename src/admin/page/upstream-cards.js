/** The cards of the upstreams, in the order of the config. Of several upstreams, only those that were opened have one. */
import { RateChart } from './rate-chart.js';
import { copyTemplate, find, setAttribute, setDisabled, setShown, setText } from './dom/dom.js';
import { KeyedRows } from './keyed-rows.js';
import { formatClock, formatRateLabel, formatTimeSpan } from './text/labels.js';
import { upstreamSeverity, stateSeverity, formatHeadline, stateLabel } from './text/limit-labels.js';
import { LIMIT_STATE_MEANINGS } from './text/state-meanings.js';
import { cardId, UpstreamOverview } from './upstream-overview.js';
import { makeAccounts, makeEndpoints, makeFigures, makeNestedLimits } from './upstream-figures.js';

/** @import { OperatorActions } from './operator-actions.js' */
/** @import { RateHistory, PageModel } from './page-model.js' */
/** @import { UpstreamStatus } from './api-types.ts' */

/** Milliseconds between updates of a chart's description for screen readers: each second would be a nuisance. */
const DESCRIPTION_INTERVAL_MS = 10_000;

export class UpstreamCards {
  #model;
  #waiting = find(document, '#waiting', HTMLElement);
  #cards;
  #overview;
  /** Names of upstreams whose card was made. */
  #made = new Set();
  /** @type {Set<RateChart>} */
  #charts = new Set();

  /**
   * @param {PageModel} model
   * @param {OperatorActions} actions
   */
  constructor(model, actions) {
    this.#model = model;
    const container = find(document, '#upstreams', HTMLElement);
    /** @type {KeyedRows<UpstreamStatus>} */
    this.#cards = new KeyedRows(
      container,
      ({ name }) => name,
      ({ name }) => this.#makeCard(name, actions),
      'always',
    );
    this.#overview = new UpstreamOverview(model, (name) => {
      this.draw();
      document.getElementById(cardId(name))?.scrollIntoView({ block: 'nearest' });
    });
  }

  draw() {
    const { status } = this.#model;
    if (status === undefined) return;
    setShown(this.#waiting, false);
    this.#overview.draw(status.upstreams);
    for (const { name } of status.upstreams) if (this.#isOpen(name)) this.#made.add(name);
    this.#cards.show(status.upstreams.filter(({ name }) => this.#made.has(name)));
  }

  /** @param {string} name */
  #isOpen(name) {
    return this.#model.status?.upstreams.length === 1 || this.#overview.isOpen(name);
  }

  /** Reads the colours again after a change of theme. */
  recolour() {
    for (const chart of this.#charts) chart.recolour();
  }

  /**
   * @param {string} name
   * @param {OperatorActions} actions
   */
  #makeCard(name, actions) {
    const row = copyTemplate('upstream-template');
    row.id = cardId(name);
    const title = find(row, '[data-name]', HTMLElement);
    title.id = `${row.id}-title`;
    setText(title, name);
    row.setAttribute('aria-labelledby', title.id);
    find(row, '.actions', HTMLElement).setAttribute('aria-label', `Actions for ${name}`);
    /** @type {UpstreamStatus | undefined} */
    let shown;
    /** @type {HTMLButtonElement[]} */
    const buttons = [];
    for (const act of /** @type {const} */ (['pin', 'unpin', 'block', 'unblock'])) {
      const button = find(row, `[data-act='${act}']`, HTMLButtonElement);
      button.addEventListener('click', () => shown && actions[act](shown));
      buttons.push(button);
    }
    /** @type {number | null} */
    let pointedIndex = null;
    const legend = this.#makeLegend(row);
    const chart = new RateChart(row, (index) => {
      pointedIndex = index;
      legend(this.#model.histories.get(name), pointedIndex);
    });
    this.#charts.add(chart);
    const fillFigures = makeFigures(row);
    const fillNested = makeNestedLimits(row);
    const fillAccounts = makeAccounts(row);
    const fillEndpoints = makeEndpoints(row);
    let describedAt = 0;
    /** @param {UpstreamStatus} upstream */
    const fill = (upstream) => {
      shown = upstream;
      setShown(row, this.#isOpen(name));
      if (row.hidden) return;
      const { now } = this.#model;
      setAttribute(row, 'data-severity', upstreamSeverity(upstream));
      setAttribute(find(row, '.state', HTMLElement), 'data-severity', stateSeverity(upstream));
      const meaning = LIMIT_STATE_MEANINGS[stateLabel(upstream)];
      setText(find(row, '[data-state]', HTMLElement), stateLabel(upstream));
      setAttribute(find(row, '[data-state]', HTMLElement), 'title', meaning);
      setText(find(row, '[data-meaning]', HTMLElement), meaning);
      const headline = formatHeadline(upstream, now);
      setText(find(row, '[data-headline]', HTMLElement), `${headline.charAt(0).toUpperCase()}${headline.slice(1)}`);
      const { state, pinned } = upstream;
      for (const button of buttons) setDisabled(button, this.#model.status?.actions.reason ?? null);
      setText(find(row, "[data-act='pin']", HTMLElement), pinned === null ? 'Pin a rate…' : 'Pin another rate…');
      setShown(find(row, "[data-act='unpin']", HTMLElement), pinned !== null);
      setShown(find(row, "[data-act='block']", HTMLElement), state !== 'blocked' || upstream.blockedBy !== 'operator');
      setShown(find(row, "[data-act='unblock']", HTMLElement), state === 'blocked');
      const history = this.#model.histories.get(name);
      chart.draw(history, this.#model.chartSeconds);
      legend(history, pointedIndex);
      fillFigures(upstream);
      fillNested(upstream, now);
      fillAccounts(upstream, now);
      fillEndpoints(upstream);
      if (now - describedAt < DESCRIPTION_INTERVAL_MS) return;
      describedAt = now;
      chart.describe(
        `Rates of the last ${formatTimeSpan(this.#model.chartSeconds)}. Now: allowed ${formatRateLabel(upstream.rate)}, sent ${formatRateLabel(upstream.sentPerSecond)}, failed attempts ${formatRateLabel(upstream.failedPerSecond)}, 429s from upstream ${formatRateLabel(upstream.throttledPerSecond)}.`,
      );
    };
    return { row, fill };
  }

  /** @param {HTMLElement} row */
  #makeLegend(row) {
    const values = /** @type {const} */ (['rate', 'sent', 'failed', 'throttled', 'ceiling']).map(
      (name) => /** @type {const} */ ([name, find(row, `[data-series='${name}'] [data-value]`, HTMLElement)]),
    );
    const when = find(row, '[data-when]', HTMLElement);
    /**
     * @param {RateHistory | undefined} history
     * @param {number | null} index of the sample; null: the newest
     */
    return (history, index) => {
      if (history === undefined) return;
      const { times, series } = history;
      for (const [name, element] of values) {
        const value = series[name].at(index ?? -1) ?? null;
        setText(element, value === null ? 'none' : formatRateLabel(value));
      }
      const at = index === null ? undefined : times[index];
      const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
      const shown = Math.min(span, this.#model.chartSeconds);
      const latest = `last ${shown < this.#model.chartSeconds - 1 ? formatTimeSpan(shown) : formatSpan(this.#model.chartSeconds)}`;
      setText(when, at === undefined ? latest : `at ${formatClock(new Date(at * 1000).toISOString())}`);
    };
  }
}

/** @param {number} seconds one of CHART_SPANS */
export function formatSpan(seconds) {
  return seconds === 3600 ? 'hour' : `${seconds / 60} minutes`;
}
