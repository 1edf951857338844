/** A card for each upstream, in the order of the config, and all of them in a line each. */
import { Chart } from './rate-chart.js';
import { copyTemplate, find, setAttribute, setShown, setText } from './dom.js';
import { Rows } from './keyed-rows.js';
import {
  moodOf,
  moodOfNested,
  moodOfState,
  writeClock,
  writeCount,
  writeHeadline,
  writeLimitName,
  writeNested,
  writePart,
  writeRate,
  writeSpan,
  writeState,
  writeTook,
} from './labels.js';

/** @import { Actions } from './operator-actions.js' */
/** @import { History, Model } from './page-model.js' */
/** @import { UpstreamStatus } from './api-types.ts' */

/** Of what a chart says to those who cannot see it, in milliseconds: nobody wants to hear it each second. */
const DESCRIBED = 10_000;

export class Upstreams {
  #model;
  #short = find(document, '#short', HTMLElement);
  #waiting = find(document, '#waiting', HTMLElement);
  #cards;
  #lines;
  /** @type {Set<Chart>} */
  #charts = new Set();

  /**
   * @param {Model} model
   * @param {Actions} actions
   */
  constructor(model, actions) {
    this.#model = model;
    const place = find(document, '#upstreams', HTMLElement);
    /** @type {Rows<UpstreamStatus>} */
    this.#cards = new Rows(
      place,
      ({ name }) => name,
      ({ name }) => this.#makeCard(name, actions),
      'always',
    );
    /** @type {Rows<UpstreamStatus>} */
    this.#lines = new Rows(
      this.#short,
      ({ name }) => name,
      (upstream) => this.#makeLine(upstream),
      'always',
    );
  }

  draw() {
    const { status } = this.#model;
    if (status === undefined) return;
    setShown(this.#waiting, false);
    this.#cards.show(status.upstreams);
    setShown(this.#short, status.upstreams.length > 1);
    if (status.upstreams.length > 1) this.#lines.show(status.upstreams);
  }

  recolour() {
    for (const chart of this.#charts) chart.recolour();
  }

  /** @param {UpstreamStatus} upstream */
  #makeLine({ name }) {
    const row = document.createElement('li');
    const [mark, link, text] = [
      document.createElement('span'),
      document.createElement('a'),
      document.createElement('span'),
    ];
    const line = document.createElement('p');
    mark.className = 'mark';
    mark.ariaHidden = 'true';
    link.href = `#${idOf(name)}`;
    link.textContent = name;
    line.append(link, ' ', text);
    row.append(mark, line);
    /** @param {UpstreamStatus} upstream */
    const fill = (upstream) => {
      setAttribute(row, 'data-mood', moodOf(upstream));
      setText(text, writeHeadline(upstream, this.#model.now));
    };
    return { row, fill };
  }

  /**
   * @param {string} name
   * @param {Actions} actions
   */
  #makeCard(name, actions) {
    const row = copyTemplate('upstream-template');
    row.id = idOf(name);
    const title = find(row, '[data-name]', HTMLElement);
    title.id = `${row.id}-title`;
    setText(title, name);
    row.setAttribute('aria-labelledby', title.id);
    find(row, '.actions', HTMLElement).setAttribute('aria-label', `What can be done with ${name}`);
    /** @type {UpstreamStatus | undefined} */
    let shown;
    for (const act of /** @type {const} */ (['pin', 'unpin', 'block', 'unblock'])) {
      find(row, `[data-act='${act}']`, HTMLButtonElement).addEventListener('click', () => shown && actions[act](shown));
    }
    /** @type {number | null} */
    let pointed = null;
    const legend = this.#makeLegend(row);
    const chart = new Chart(row, (index) => {
      pointed = index;
      legend(this.#model.histories.get(name), pointed);
    });
    this.#charts.add(chart);
    const fillFigures = figures(row);
    const fillNested = nestedLimits(row);
    const fillEndpoints = endpoints(row);
    let describedAt = 0;
    /** @param {UpstreamStatus} upstream */
    const fill = (upstream) => {
      shown = upstream;
      const { now } = this.#model;
      setAttribute(row, 'data-mood', moodOf(upstream));
      setAttribute(find(row, '.state', HTMLElement), 'data-mood', moodOfState(upstream));
      setText(find(row, '[data-state]', HTMLElement), writeState(upstream));
      const headline = writeHeadline(upstream, now);
      setText(find(row, '[data-headline]', HTMLElement), `${headline.charAt(0).toUpperCase()}${headline.slice(1)}`);
      const { state, pinned } = upstream;
      setText(find(row, "[data-act='pin']", HTMLElement), pinned === null ? 'Pin a rate…' : 'Pin another rate…');
      setShown(find(row, "[data-act='unpin']", HTMLElement), pinned !== null);
      setShown(find(row, "[data-act='block']", HTMLElement), state !== 'blocked' || upstream.blockedBy !== 'operator');
      setShown(find(row, "[data-act='unblock']", HTMLElement), state === 'blocked');
      const history = this.#model.histories.get(name);
      chart.draw(history);
      legend(history, pointed);
      fillFigures(upstream);
      fillNested(upstream, now);
      fillEndpoints(upstream);
      if (now - describedAt < DESCRIBED) return;
      describedAt = now;
      chart.describe(
        `Rates of the last five minutes. Now: allowed ${writeRate(upstream.rate)}, sent ${writeRate(upstream.sentPerSecond)}, refused by the upstream ${writeRate(upstream.throttledPerSecond)}.`,
      );
    };
    return { row, fill };
  }

  /** @param {HTMLElement} row */
  #makeLegend(row) {
    const values = /** @type {const} */ (['rate', 'sent', 'throttled', 'ceiling']).map(
      (name) => /** @type {const} */ ([name, find(row, `[data-series='${name}'] [data-value]`, HTMLElement)]),
    );
    const when = find(row, '[data-when]', HTMLElement);
    /**
     * @param {History | undefined} history
     * @param {number | null} index of the sample; null: the newest
     */
    return (history, index) => {
      if (history === undefined) return;
      const { times, series } = history;
      for (const [name, place] of values) {
        const value = series[name].at(index ?? -1) ?? null;
        setText(place, value === null ? 'none' : writeRate(value));
      }
      const at = index === null ? undefined : times[index];
      const watched = (times.at(-1) ?? 0) - (times[0] ?? 0);
      const latest = watched < 299 ? `watched for ${writeSpan(watched)}` : 'the last 5 minutes';
      setText(when, at === undefined ? latest : `at ${writeClock(new Date(at * 1000).toISOString())}`);
    };
  }
}

/** @param {HTMLElement} row */
function figures(row) {
  /** @param {string} name */
  const place = (name) => find(row, `[data-figure='${name}']`, HTMLElement);
  const limits = find(row, '[data-limits]', HTMLElement);
  /** @param {UpstreamStatus} upstream */
  return (upstream) => {
    const { inFlight, places, scope } = upstream;
    setText(place('accepted'), writeRate(upstream.acceptedPerSecond));
    setText(place('queued'), writeCount(upstream.queued));
    setText(
      place('inFlight'),
      places === null ? writeCount(inFlight) : `${writeCount(inFlight)} of ${writeCount(places)}`,
    );
    setText(place('retries'), writeRate(upstream.retriesPerSecond));
    setText(place('budget'), writePart(upstream.budgetLeft));
    setText(place('quota'), upstream.quotaLeft === null ? 'not told' : writePart(upstream.quotaLeft));
    setText(place('p50'), writeTook(upstream.p50Seconds));
    setText(place('p99'), writeTook(upstream.p99Seconds));
    setShown(limits, scope !== 'upstream');
    setText(place('limits'), `${writeCount(upstream.limits)}, one a ${scope}`);
  };
}

/** @param {HTMLElement} row */
function nestedLimits(row) {
  const list = find(row, '[data-nested]', HTMLElement);
  let now = 0;
  /** @type {Rows<UpstreamStatus['nestedLimits'][number]>} */
  const rows = new Rows(
    list,
    ({ name }) => name,
    () => {
      const item = document.createElement('li');
      const [mark, text] = [document.createElement('span'), document.createElement('span')];
      item.className = 'state';
      mark.className = 'mark';
      mark.ariaHidden = 'true';
      item.append(mark, text);
      return {
        row: item,
        fill: (limit) => {
          setAttribute(item, 'data-mood', moodOfNested(limit));
          setText(text, `${writeLimitName(limit)}: ${writeNested(limit, now)}`);
        },
      };
    },
  );
  /**
   * @param {UpstreamStatus} upstream
   * @param {number} at
   */
  return (upstream, at) => {
    now = at;
    setShown(list, upstream.nestedLimits.length > 0);
    rows.show(upstream.nestedLimits);
  };
}

/** @param {HTMLElement} row */
function endpoints(row) {
  /** @type {Rows<UpstreamStatus['endpoints'][number]>} */
  const rows = new Rows(
    find(row, '[data-endpoints]', HTMLElement),
    ({ endpoint }) => endpoint,
    () => {
      const item = document.createElement('li');
      const [mark, text] = [document.createElement('span'), document.createElement('span')];
      item.className = 'state';
      mark.className = 'mark';
      mark.ariaHidden = 'true';
      item.append(mark, text);
      return {
        row: item,
        fill: ({ endpoint, healthy }) => {
          setAttribute(item, 'data-mood', healthy ? 'well' : 'trouble');
          setText(text, healthy ? endpoint : `${endpoint} – left out: it fails`);
        },
      };
    },
  );
  /** @param {UpstreamStatus} upstream */
  return (upstream) => rows.show(upstream.endpoints);
}

/** @param {string} name */
function idOf(name) {
  return `upstream-${encodeURIComponent(name)}`;
}
