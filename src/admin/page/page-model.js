/** What has been heard so far. */

/** @import { ClientRow, Events, Status, UpstreamStatus } from './api-types.ts' */

/** Seconds that the charts show. */
export const SPAN = 300;
/** Longer than this between two samples, and nobody knows what was in between. */
const GAP = 4;
/** Samples over which the least delayed tells the server's clock. */
const CLOCK_SAMPLES = 10;

/** Of one upstream, aligned: seconds since 1970, and rates; null where nothing is known. */
export class History {
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
    if (last !== undefined && time - last > GAP) this.#push(last + 1, null, null, null, null);
    const allowed = state === 'blocked' ? 0 : (pinned ?? rate);
    this.#push(time, allowed, sentPerSecond, throttledPerSecond, ceiling);
    while ((this.times[0] ?? time) < time - SPAN - GAP) {
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

export class Model {
  /** @type {Status | undefined} */
  status;
  /** @type {{readonly total: number, readonly rows: readonly ClientRow[]}} */
  clients = { total: 0, rows: [] };
  /** @type {Map<string, History>} */
  histories = new Map();
  /** When the newest status came, by our clock. */
  heardAt = 0;
  /** @type {number[]} */
  #offsets = [];

  /** The server's clock, in milliseconds since 1970. */
  get now() {
    return Date.now() + (this.#offsets.length === 0 ? 0 : Math.max(...this.#offsets));
  }

  /** @param {Events['status']} heard */
  take({ status, clients }) {
    this.status = status;
    this.clients = clients;
    this.heardAt = Date.now();
    const at = Date.parse(status.at);
    this.#offsets.push(at - this.heardAt);
    if (this.#offsets.length > CLOCK_SAMPLES) this.#offsets.shift();
    for (const upstream of status.upstreams) {
      const history = this.histories.get(upstream.name) ?? new History();
      this.histories.set(upstream.name, history);
      history.add(at / 1000, upstream);
    }
  }
}
