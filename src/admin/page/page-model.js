/** The state of the page: the latest status, and the rates of the last minutes. */

/** @import { ClientRow, StreamEvents, ProcessStatus, UpstreamStatus } from './api-types.ts' */

/** The longest time axis of the charts, in seconds. */
export const CHART_SECONDS = 300;
/** A longer gap between two samples is drawn as a gap. */
const MAX_GAP_SECONDS = 4;
/** Time without a status event until the data counts as out of date. A status arrives every second. */
export const STALE_AFTER_MS = 4000;
/** The least delayed of this many status events gives the offset of the server's clock. */
const CLOCK_SAMPLES = 10;

/** Samples of one upstream: times in seconds since 1970, and rates per second; null where unknown. */
export class RateHistory {
  /** @type {number[]} */
  times = [];
  /** @type {Record<'rate' | 'sent' | 'throttled' | 'ceiling', (number | null)[]>} */
  series = { rate: [], sent: [], throttled: [], ceiling: [] };

  /**
   * @param {number} time
   * @param {UpstreamStatus} upstream
   */
  add(time, { state, rate, pinned, ceiling, sentPerSecond, throttledPerSecond }) {
    const last = this.times.at(-1);
    if (last !== undefined && time <= last) return;
    if (last !== undefined && time - last > MAX_GAP_SECONDS) this.#push(last + 1, null, null, null, null);
    const allowed = state === 'blocked' ? 0 : (pinned ?? rate);
    this.#push(time, allowed, sentPerSecond, throttledPerSecond, ceiling);
    while ((this.times[0] ?? time) < time - CHART_SECONDS - MAX_GAP_SECONDS) {
      this.times.shift();
      for (const values of Object.values(this.series)) values.shift();
    }
  }

  /**
   * @param {number} time
   * @param {number | null} rate
   * @param {number | null} sent
   * @param {number | null} throttled
   * @param {number | null} ceiling
   */
  #push(time, rate, sent, throttled, ceiling) {
    this.times.push(time);
    this.series.rate.push(rate);
    this.series.sent.push(sent);
    this.series.throttled.push(throttled);
    this.series.ceiling.push(ceiling);
  }
}

export class PageModel {
  /** @type {ProcessStatus | undefined} */
  status;
  /** @type {{readonly total: number, readonly rows: readonly ClientRow[]}} */
  clients = { total: 0, rows: [] };
  /** @type {Map<string, RateHistory>} */
  histories = new Map();
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
