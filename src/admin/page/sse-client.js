/** Follows the admin port's events for as long as anybody wants them, and comes back when the connection is lost. */
import { EventStream } from './sse-parser.js';

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
 * @property {() => string | undefined} token asked for at each attempt
 * @property {(name: string, data: unknown) => void} onEvent
 * @property {(state: FeedState) => void} onState
 * @property {() => number} random uniform on [0, 1)
 */

/** Of waits between attempts, in milliseconds. */
const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;
/** Something comes each second: after this, nothing will. */
const SILENCE = 10_000;

/** Refusals that no patience helps against. */
const DENIALS = new Set([401, 403, 404, 421]);

export class Feed {
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

  /** Does not wait any longer: a token is there, or somebody looks again. */
  retryNow() {
    if (this.#closed || this.#attempt !== undefined) return;
    clearTimeout(this.#timer);
    void this.#connect();
  }

  /** As if the connection were lost, and back at once: with another token, say. */
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
    const retryIn = Math.max(end.notBefore, this.#chooseWait());
    this.#failures += 1;
    this.#timer = setTimeout(() => this.retryNow(), retryIn);
    this.#options.onState({ kind: 'lost', why: end.why, retryIn });
  }

  /** Full jitter: all pages of a proxy that comes back do not come back at once. */
  #chooseWait() {
    const bound = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.#failures);
    return bound * (0.1 + 0.9 * this.#options.random());
  }

  /**
   * @param {AbortController} attempt
   * @returns {Promise<
   *   {readonly kind: 'lost', readonly why: string, readonly notBefore: number}
   *   | Extract<FeedState, {readonly kind: 'denied'}>
   * >} when it is over
   */
  async #follow(attempt) {
    const { url, token } = this.#options;
    const listen = () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => attempt.abort(new Error('nothing came for ten seconds')), SILENCE);
    };
    listen();
    try {
      const held = token();
      const response = await fetch(url, {
        headers: { accept: 'text/event-stream', ...(held === undefined ? {} : { authorization: `Bearer ${held}` }) },
        cache: 'no-store',
        signal: attempt.signal,
      });
      if (!response.ok || response.body === null) return await refusal(response);
      this.#options.onState({ kind: 'live' });
      const stream = new EventStream();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return { kind: 'lost', why: 'the connection was closed', notBefore: 0 };
        listen();
        for (const { name, data } of stream.read(value)) this.#tell(name, data);
      }
    } catch (error) {
      return { kind: 'lost', why: told(error), notBefore: 0 };
    }
  }

  /**
   * @param {string} name
   * @param {string} data
   */
  #tell(name, data) {
    this.#failures = 0;
    this.#options.onEvent(name, JSON.parse(data));
  }
}

/** @param {Response} response */
async function refusal(response) {
  const { status } = response;
  const why = await problemOf(response);
  if (DENIALS.has(status)) return /** @type {const} */ ({ kind: 'denied', status, why });
  const seconds = Number(response.headers.get('retry-after') ?? 0);
  return /** @type {const} */ ({ kind: 'lost', why, notBefore: Number.isFinite(seconds) ? seconds * 1000 : 0 });
}

/**
 * What a problem+json says, in a sentence.
 * @param {Response} response
 */
export async function problemOf(response) {
  try {
    /** @type {unknown} */
    const problem = await response.json();
    if (problem instanceof Object && 'detail' in problem && typeof problem.detail === 'string') return problem.detail;
  } catch {
    // Not ours: a proxy between has answered.
  }
  return `it answered ${response.status}`;
}

/** @param {unknown} error */
function told(error) {
  if (!(error instanceof Error)) return 'the connection failed';
  const { cause } = error;
  if (cause instanceof Error && 'code' in cause) return String(cause.code);
  return error.message;
}
