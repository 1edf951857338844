/** The state of the page: the latest status, and the rates of the last hour. */

/** @import { ClientRow, History, StreamEvents, ProcessStatus, UpstreamStatus } from './api-types.ts' */

/** The time axes of the charts to choose from, in seconds. */
export const CHART_SPANS = /** @type {const} */ ([300, 3600]);
/** History that is kept, in seconds. */
const KEPT_SECONDS = 3600;
/** A longer gap between two samples is drawn as a gap. */
const MAX_GAP_SECONDS = 4;
/** Time without a status event until the data counts as out of date. A status arrives every second. */
export const STALE_AFTER_MS = 4000;
/** The least delayed of this many status events gives the offset of the server's clock. */
const CLOCK_SAMPLES = 10;

/** @typedef {'rate' | 'sent' | 'failed' | 'throttled' | 'ceiling'} SeriesName */

/** Samples of one upstream: times in seconds since 1970, and rates per second; null where unknown. */
export class RateHistory {
  /** @type {number[]} */
  times = [];
  /** @type {Record<SeriesName, (number | null)[]>} */
  series = { rate: [], sent: [], failed: [], throttled: [], ceiling: [] };

  /**
   * @param {number} time
   * @param {UpstreamStatus} upstream
   */
  add(time, upstream) {
    const { state, rate, pinned } = upstream;
    const last = this.times.at(-1);
    if (last !== undefined && time <= last) return;
    if (last !== undefined && time - last > MAX_GAP_SECONDS) this.#push(last + 1);
    const allowed = state === 'blocked' ? 0 : (pinned ?? rate);
    this.#push(time, { ...upstream, rate: allowed });
    while ((this.times[0] ?? time) < time - KEPT_SECONDS - MAX_GAP_SECONDS) {
      this.times.shift();
      for (const values of Object.values(this.series)) values.shift();
    }
  }

  /**
   * Replaces what is known by the history of the process, which includes the time before the page was opened.
   * @param {History['upstreams'][number]['samples']} samples oldest first
   */
  load(samples) {
    this.times = [];
    for (const values of Object.values(this.series)) values.length = 0;
    for (const sample of samples) {
      const time = Date.parse(sample.at) / 1000;
      const last = this.times.at(-1);
      if (last !== undefined && time <= last) continue;
      // A sample covers the time since the one before it, unless the process did not run.
      if (last !== undefined && time - last > sample.seconds + MAX_GAP_SECONDS) this.#push(last + 1);
      this.#push(time, sample);
    }
  }

  /**
   * @param {number} time
   * @param {Omit<History['upstreams'][number]['samples'][number], 'at' | 'seconds'>} [rates] none for a gap
   */
  #push(time, rates) {
    const { rate, sent, failed, throttled, ceiling } = this.series;
    this.times.push(time);
    rate.push(rates?.rate ?? null);
    sent.push(rates?.sentPerSecond ?? null);
    failed.push(rates?.failedPerSecond ?? null);
    throttled.push(rates?.throttledPerSecond ?? null);
    ceiling.push(rates?.ceiling ?? null);
  }
}

export class PageModel {
  /** @type {ProcessStatus | undefined} */
  status;
  /** @type {{readonly total: number, readonly rows: readonly ClientRow[]}} */
  clients = { total: 0, rows: [] };
  /** @type {Map<string, RateHistory>} */
  histories = new Map();
  /** @type {(typeof CHART_SPANS)[number]} the time axis of the charts, in seconds */
  chartSeconds = CHART_SPANS[0];
  /** When the newest status arrived, by the browser's clock, in milliseconds since 1970; 0: none yet. */
  receivedAt = 0;
  #isDisconnected = false;
  /** @type {number[]} */
  #offsets = [];

  /** Whether the newest status is out of date: no connection, or no data. Countdowns and the uptime stop then. */
  get isStale() {
    return this.#isDisconnected || (this.receivedAt > 0 && Date.now() - this.receivedAt > STALE_AFTER_MS);
  }

  /** @param {boolean} isConnected */
  setConnected(isConnected) {
    this.#isDisconnected = !isConnected;
  }

  /** The server's clock, in milliseconds since 1970. While data is out of date: the time of the newest status. */
  get now() {
    const time = this.isStale ? this.receivedAt : Date.now();
    return time + (this.#offsets.length === 0 ? 0 : Math.max(...this.#offsets));
  }

  /** @param {History} history */
  load({ upstreams }) {
    for (const { name, samples } of upstreams) {
      const history = this.histories.get(name) ?? new RateHistory();
      this.histories.set(name, history);
      history.load(samples);
    }
  }

  /** @param {StreamEvents['status']} event */
  update({ status, clients }) {
    this.status = status;
    this.clients = clients;
    this.receivedAt = Date.now();
    const at = Date.parse(status.at);
    this.#offsets.push(at - this.receivedAt);
    if (this.#offsets.length > CLOCK_SAMPLES) this.#offsets.shift();
    for (const upstream of status.upstreams) {
      const history = this.histories.get(upstream.name) ?? new RateHistory();
      this.histories.set(upstream.name, history);
      history.add(at / 1000, upstream);
    }
  }
}
