/** Follows the event stream of the admin port, and reconnects with backoff when the connection is lost. */
import { SseParser } from './sse-parser.js';

/**
 * @typedef {(
 *   | {readonly kind: 'connecting'}
 *   | {readonly kind: 'live'}
 *   | {readonly kind: 'lost', readonly why: string, readonly retryIn: number}
 *   | {readonly kind: 'denied', readonly status: number, readonly why: string}
 * )} FeedState `retryIn` in milliseconds
 *
 * @typedef {object} FeedOptions
 * @property {string} url
 * @property {() => string | undefined} token called at each attempt
 * @property {(name: string, data: unknown) => void} onEvent
 * @property {(state: FeedState) => void} onState
 * @property {() => number} random uniform on [0, 1)
 */

/** Bounds of the delay between attempts. */
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 15_000;
/** The server sends something every second, so a longer silence means a dead connection. */
const SILENCE_TIMEOUT_MS = 10_000;

/** Retrying does not help against these. */
const PERMANENT_STATUSES = new Set([401, 403, 404, 421]);

export class SseClient {
  /** @type {FeedOptions} */
  #options;
  #failures = 0;
  #closed = false;
  /** @type {AbortController | undefined} */
  #attempt;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {FeedOptions} options */
  constructor(options) {
    this.#options = options;
    void this.#connect();
  }

  /** Ends the current delay, for instance because the page is visible again. No effect while connected. */
  retryNow() {
    if (this.#closed || this.#attempt !== undefined) return;
    clearTimeout(this.#timer);
    void this.#connect();
  }

  /** Drops the connection and opens a new one, for instance with another token. */
  restart() {
    this.#attempt?.abort();
    this.#attempt = undefined;
    this.retryNow();
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#attempt?.abort();
  }

  async #connect() {
    const attempt = new AbortController();
    this.#attempt = attempt;
    this.#options.onState({ kind: 'connecting' });
    const end = await this.#follow(attempt);
    clearTimeout(this.#timer);
    if (this.#closed || this.#attempt !== attempt) return;
    this.#attempt = undefined;
    if (end.kind === 'denied') return this.#options.onState(end);
    const retryIn = Math.max(end.notBefore, this.#backoffDelay());
    this.#failures += 1;
    this.#timer = setTimeout(() => this.retryNow(), retryIn);
    this.#options.onState({ kind: 'lost', why: end.why, retryIn });
  }

  /** Jitter, so that the open pages of a restarted proxy do not all reconnect at once. */
  #backoffDelay() {
    const bound = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures);
    return bound * (0.1 + 0.9 * this.#options.random());
  }

  /**
   * @param {AbortController} attempt
   * @returns {Promise<
   *   {readonly kind: 'lost', readonly why: string, readonly notBefore: number}
   *   | Extract<FeedState, {readonly kind: 'denied'}>
   * >} resolves when the connection ends
   */
  async #follow(attempt) {
    const { url, token } = this.#options;
    const restartSilenceTimer = () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => attempt.abort(new Error('no data for 10 seconds')), SILENCE_TIMEOUT_MS);
    };
    restartSilenceTimer();
    try {
      const bearer = token();
      const response = await fetch(url, {
        headers: {
          accept: 'text/event-stream',
          ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        },
        cache: 'no-store',
        signal: attempt.signal,
      });
      if (!response.ok || response.body === null) return await describeRefusal(response);
      this.#options.onState({ kind: 'live' });
      const stream = new SseParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return { kind: 'lost', why: 'the connection was closed', notBefore: 0 };
        restartSilenceTimer();
        for (const { name, data } of stream.push(value)) this.#dispatch(name, data);
      }
    } catch (error) {
      return { kind: 'lost', why: describeError(error), notBefore: 0 };
    }
  }

  /**
   * @param {string} name
   * @param {string} data
   */
  #dispatch(name, data) {
    this.#failures = 0;
    this.#options.onEvent(name, JSON.parse(data));
  }
}

/** @param {Response} response */
async function describeRefusal(response) {
  const { status } = response;
  const why = await problemDetail(response);
  if (PERMANENT_STATUSES.has(status)) return /** @type {const} */ ({ kind: 'denied', status, why });
  const seconds = Number(response.headers.get('retry-after') ?? 0);
  return /** @type {const} */ ({ kind: 'lost', why, notBefore: Number.isFinite(seconds) ? seconds * 1000 : 0 });
}

/**
 * The `detail` of a problem+json response, or its status.
 * @param {Response} response
 */
export async function problemDetail(response) {
  try {
    /** @type {unknown} */
    const problem = await response.json();
    if (problem instanceof Object && 'detail' in problem && typeof problem.detail === 'string') return problem.detail;
  } catch {
    // Not a response of Tidegate: a proxy in between has answered.
  }
  return `HTTP status ${response.status}`;
}

/** @param {unknown} error */
function describeError(error) {
  if (!(error instanceof Error)) return 'the connection failed';
  const { cause } = error;
  if (cause instanceof Error && 'code' in cause) return String(cause.code);
  // Each browser has its own words for this, such as "Failed to fetch".
  return error instanceof TypeError ? 'Tidegate does not respond' : error.message;
}
