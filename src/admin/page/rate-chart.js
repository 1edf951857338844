/** The chart of one upstream's rates in the last minutes, or in the last hour. */
import { find } from './dom/dom.js';
import uPlot from './uplot.js';
import { formatClock } from './text/labels.js';

/** @import { RateHistory, SeriesName } from './page-model.js' */

/** In drawing order: in an outage every attempt fails, and the failures must cover the attempts. */
const SERIES = /** @type {const} */ (['sent', 'ceiling', 'throttled', 'rate', 'failed']);
const FONT = '12px system-ui, sans-serif';
/** The shortest time axis, in seconds. */
const MIN_SPAN_SECONDS = 60;
/** A ceiling above this multiple of all other values is hidden: it would flatten the other curves. */
const MAX_CEILING_RATIO = 2;

export class RateChart {
  #plot;
  #container;
  #card;
  #isVisible = false;
  /** @type {number | undefined} time of the newest sample that is drawn */
  #drawnUntil;
  /** @type {Record<string, string>} */
  #colours = {};
  /** @type {RateHistory | undefined} */
  #history;
  #seconds = 0;

  /**
   * @param {HTMLElement} card its legend provides the colours
   * @param {(index: number | null) => void} onPoint called with the index of the sample under the pointer
   */
  constructor(card, onPoint) {
    this.#card = card;
    this.#container = find(card, '[data-plot]', HTMLElement);
    const line = { points: { show: false } };
    /** @param {string} name */
    const stroke = (name) => () => this.#colours[name] ?? '';
    const axis = {
      stroke: stroke('text'),
      font: FONT,
      grid: { stroke: stroke('grid'), width: 1 },
      ticks: { show: false },
    };
    this.#plot = new uPlot(
      {
        width: 300,
        height: 190,
        padding: [8, 8, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        scales: { x: { time: true }, y: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.15)] } },
        axes: [
          {
            ...axis,
            size: 26,
            space: 64,
            incrs: [10, 20, 30, 60, 300, 600, 1200],
            values: (_plot, splits) => splits.map(formatAxisTime),
          },
          { ...axis, size: 46, values: (_plot, splits) => splits.map((value) => (value === 0 ? '0' : `${value}/s`)) },
        ],
        series: [
          {},
          { ...line, stroke: stroke('sent'), fill: () => fade(this.#colours['sent'] ?? ''), width: 1.5 },
          { ...line, stroke: stroke('ceiling'), width: 1.5, dash: [5, 4] },
          { ...line, stroke: stroke('throttled'), width: 2, dash: [2, 2] },
          { ...line, stroke: stroke('rate'), width: 2.5 },
          { ...line, stroke: stroke('failed'), width: 2 },
        ],
        hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
      },
      [[], ...SERIES.map(() => [])],
      this.#container,
    );
    new ResizeObserver(() => this.#fit()).observe(this.#container);
    new IntersectionObserver((entries) => {
      this.#isVisible = entries.at(-1)?.isIntersecting ?? false;
      if (this.#isVisible) this.draw(this.#history);
    }).observe(this.#container);
  }

  /**
   * @param {RateHistory | undefined} history drawn once the chart is visible
   * @param {number} [seconds] the longest time axis
   */
  draw(history, seconds = this.#seconds) {
    this.#history = history;
    if (seconds !== this.#seconds) this.#drawnUntil = undefined;
    this.#seconds = seconds;
    if (!this.#isVisible || history === undefined) return;
    const { times } = history;
    const last = times.at(-1) ?? 0;
    if (last === this.#drawnUntil) return;
    // Computed colours exist only once the chart is part of the document.
    if (this.#drawnUntil === undefined) this.#readColours();
    this.#drawnUntil = last;
    this.#plot.batch(() => {
      this.#plot.setData([times, ...SERIES.map((name) => valuesOf(history, name))], false);
      // A process that was just started has few samples, so the axis starts at the first of them.
      const first = Math.max(last - seconds, Math.min(times[0] ?? last, last - MIN_SPAN_SECONDS));
      this.#plot.setScale('x', { min: first, max: last });
    });
  }

  /** Draws again with the colours of the current theme. */
  recolour() {
    this.#drawnUntil = undefined;
    this.draw(this.#history);
  }

  /** @param {string} text */
  describe(text) {
    this.#container.setAttribute('aria-label', text);
  }

  #fit() {
    const { clientWidth: width, clientHeight: height } = this.#container;
    if (width > 0 && height > 0) this.#plot.setSize({ width, height });
  }

  #readColours() {
    const style = getComputedStyle(this.#card);
    this.#colours = { text: getComputedStyle(find(this.#card, '.legend', Element)).color, grid: style.borderTopColor };
    for (const name of SERIES) {
      const swatch = find(this.#card, `[data-series='${name}'] .swatch`, Element);
      this.#colours[name] = getComputedStyle(swatch).color;
    }
    // The card's border colour depends on its severity; the grid keeps the neutral one.
    this.#colours['grid'] = getComputedStyle(find(this.#card, '.figures div', Element)).borderBottomColor;
  }
}

/**
 * The values of a series as they are drawn.
 * @param {RateHistory} history
 * @param {SeriesName} name
 */
function valuesOf(history, name) {
  if (name === 'ceiling') return clipCeiling(history);
  return name === 'failed' ? omitZeros(history) : history.series[name];
}

/**
 * The ceiling series without the values that would flatten the other curves.
 * @param {RateHistory} history
 */
function clipCeiling({ series }) {
  let highest = 1;
  for (const name of /** @type {const} */ (['rate', 'sent', 'failed', 'throttled'])) {
    for (const value of series[name]) if (value !== null && value > highest) highest = value;
  }
  return series.ceiling.map((value) => (value !== null && value > highest * MAX_CEILING_RATIO ? null : value));
}

/**
 * The failed attempts without the zeros between two others: a red line along the axis would look like a problem.
 * @param {RateHistory} history
 */
function omitZeros({ series }) {
  /** @param {number | null | undefined} value */
  const isNone = (value) => (value ?? 0) === 0;
  return series.failed.map((value, index, all) =>
    isNone(value) && isNone(all[index - 1]) && isNone(all[index + 1]) ? null : value,
  );
}

/** @param {number} seconds since 1970 */
function formatAxisTime(seconds) {
  const clock = formatClock(new Date(seconds * 1000).toISOString());
  return clock.endsWith(':00') ? clock.slice(0, -3) : clock;
}

/** @param {string} colour as computed: `rgb(…)` */
function fade(colour) {
  return colour.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.16)');
}
