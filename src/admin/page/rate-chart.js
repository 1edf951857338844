/** The rates of the last five minutes, of one upstream. */
import { find } from './dom.js';
import { SPAN } from './page-model.js';
import uPlot from './uplot.js';
import { writeClock } from './labels.js';

/** @import { History } from './page-model.js' */

/** In the order they are drawn. */
const SERIES = /** @type {const} */ (['sent', 'ceiling', 'throttled', 'rate']);
const FONT = '12px system-ui, sans-serif';
/** Seconds that are shown at least. */
const SHORTEST = 60;
/** A ceiling far above all else would flatten the rest. */
const CEILING_SHARE = 2;

export class Chart {
  #plot;
  #place;
  #card;
  #seen = false;
  /** @type {number | undefined} the newest sample that is drawn */
  #drawn;
  /** @type {Record<string, string>} */
  #colours = {};
  /** @type {History | undefined} */
  #history;

  /**
   * @param {HTMLElement} card with a legend, whose colours are used
   * @param {(index: number | null) => void} onPoint told which sample is pointed at
   */
  constructor(card, onPoint) {
    this.#card = card;
    this.#place = find(card, '[data-plot]', HTMLElement);
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
            incrs: [10, 20, 30, 60],
            values: (_plot, splits) => splits.map(writeAxisTime),
          },
          { ...axis, size: 46, values: (_plot, splits) => splits.map((value) => (value === 0 ? '0' : `${value}/s`)) },
        ],
        series: [
          {},
          { ...line, stroke: stroke('sent'), fill: () => fade(this.#colours['sent'] ?? ''), width: 1.5 },
          { ...line, stroke: stroke('ceiling'), width: 1.5, dash: [5, 4] },
          { ...line, stroke: stroke('throttled'), width: 2, dash: [2, 2] },
          { ...line, stroke: stroke('rate'), width: 2.5 },
        ],
        hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
      },
      [[], [], [], [], []],
      this.#place,
    );
    new ResizeObserver(() => this.#fit()).observe(this.#place);
    new IntersectionObserver((entries) => {
      this.#seen = entries.at(-1)?.isIntersecting ?? false;
      if (this.#seen) this.draw(this.#history);
    }).observe(this.#place);
  }

  /** @param {History | undefined} history drawn when it can be seen */
  draw(history) {
    this.#history = history;
    if (!this.#seen || history === undefined) return;
    const { times, series } = history;
    const last = times.at(-1) ?? 0;
    if (last === this.#drawn) return;
    // Not before it is part of the page: nothing has a colour until then.
    if (this.#drawn === undefined) this.#readColours();
    this.#drawn = last;
    this.#plot.batch(() => {
      this.#plot.setData(
        [times, ...SERIES.map((name) => (name === 'ceiling' ? within(history) : series[name]))],
        false,
      );
      // A page that was just opened knows little: that little, then, at its own scale.
      const first = Math.max(last - SPAN, Math.min(times[0] ?? last, last - SHORTEST));
      this.#plot.setScale('x', { min: first, max: last });
    });
  }

  /** The colours are others now. */
  recolour() {
    this.#drawn = undefined;
    this.draw(this.#history);
  }

  /** @param {string} text */
  describe(text) {
    this.#place.setAttribute('aria-label', text);
  }

  #fit() {
    const { clientWidth: width, clientHeight: height } = this.#place;
    if (width > 0 && height > 0) this.#plot.setSize({ width, height });
  }

  #readColours() {
    const style = getComputedStyle(this.#card);
    this.#colours = { text: getComputedStyle(find(this.#card, '.legend', Element)).color, grid: style.borderTopColor };
    for (const name of SERIES) {
      const swatch = find(this.#card, `[data-series='${name}'] .swatch`, Element);
      this.#colours[name] = getComputedStyle(swatch).color;
    }
    // The card's edge tells its mood; the grid does not.
    this.#colours['grid'] = getComputedStyle(find(this.#card, '.figures div', Element)).borderBottomColor;
  }
}

/**
 * The ceiling, where it leaves room for the rest.
 * @param {History} history
 */
function within({ series }) {
  let highest = 1;
  for (const name of /** @type {const} */ (['rate', 'sent', 'throttled'])) {
    for (const value of series[name]) if (value !== null && value > highest) highest = value;
  }
  return series.ceiling.map((value) => (value !== null && value > highest * CEILING_SHARE ? null : value));
}

/** @param {number} seconds since 1970 */
function writeAxisTime(seconds) {
  const clock = writeClock(new Date(seconds * 1000).toISOString());
  return clock.endsWith(':00') ? clock.slice(0, -3) : clock;
}

/** @param {string} colour as computed: `rgb(…)` */
function fade(colour) {
  return colour.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.16)');
}
