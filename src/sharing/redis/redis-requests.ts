import { setImmediate } from 'node:timers';
import type { SharedStoreOperation, SharedStoreResult } from '../../core/events/store-events.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import { ConnectionSilence } from './connection-silence.ts';

/** `isUnsent`: Redis has not received the request. Otherwise it may have. */
export type RedisResult<T> =
  | { readonly kind: 'response'; readonly response: T }
  | { readonly kind: 'lost'; readonly isUnsent: boolean };

export interface RedisRequest<T> {
  /** Absent for one that is not counted. */
  readonly op?: SharedStoreOperation;
  /** When the time for the response began; by default now. */
  readonly since?: Millis;
  /** The maximum time for the response, if it is not that of all requests. */
  readonly timeout?: Millis;
  /** Whether it is sent although Redis has not responded to others. There must be few of these. */
  readonly isProbe?: boolean;
  readonly run: () => Promise<T>;
  /** Called for each response, a late one too. */
  readonly onReceived?: (response: T) => void;
  /** Called once, always after `send` has returned. */
  readonly onDone: (result: RedisResult<T>, now: Millis) => void;
}

export interface RedisRequestsParts {
  /** The maximum time for a response. */
  readonly timeout: Millis;
  readonly clock: Clock;
  /** Whether the connection is ready, and uses the right database. */
  readonly isConnected: () => boolean;
  readonly onRequest: (op: SharedStoreOperation, result: SharedStoreResult, took: Millis) => void;
  /** A response has arrived after its time. */
  readonly onLateResponse: () => void;
  /** Redis has not responded for so long that the connection may be half open. */
  readonly onSilent: () => void;
  readonly onProblem: (error: unknown) => void;
}

/** Sends requests to Redis, each with a bounded time for its response. While Redis does not respond, it sends few. */
export class RedisRequests {
  readonly #parts: RedisRequestsParts;
  readonly #silence = new ConnectionSilence();

  constructor(parts: RedisRequestsParts) {
    this.#parts = parts;
  }

  /** There is a new connection, or another sign that Redis responds again. */
  onRecoverySign(): void {
    this.#silence.onRecoverySign();
  }

  send<T>({ op, since, isProbe = false, run, onReceived, onDone, ...request }: RedisRequest<T>): void {
    const { clock, isConnected, onRequest, onLateResponse, onProblem } = this.#parts;
    const { timeout = this.#parts.timeout } = request;
    const sentAt = clock.now();
    let isOver = false;
    const finish = (counted: SharedStoreResult, result: RedisResult<T>): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      const now = clock.now();
      if (op !== undefined) onRequest(op, counted, now - sentAt);
      onDone(result, now);
    };
    // After a stall of this process, the response may have arrived unread: setImmediate lets it be read first.
    const onTimer = (): void => {
      setImmediate(() => {
        if (isOver) return;
        this.#onTimeout(sentAt, timeout);
        finish('timeout', { kind: 'lost', isUnsent: false });
      });
    };
    const timer = setTimeout(onTimer, Math.max(0, (since ?? sentAt) + timeout - sentAt)).unref();
    if (!isConnected() || !this.#silence.maySend(isProbe, sentAt)) {
      setImmediate(() => finish('error', { kind: 'lost', isUnsent: true }));
      return;
    }
    // An error thrown after the response was read is a bug here: it must not count as an error of Redis.
    void run().then(
      (response) => {
        this.#silence.onResponse(clock.now());
        if (isOver) onLateResponse();
        onReceived?.(response);
        finish('ok', { kind: 'response', response });
      },
      (error: unknown) => {
        if (isReply(error)) this.#silence.onResponse(clock.now());
        onProblem(error);
        finish('error', { kind: 'lost', isUnsent: false });
      },
    );
  }

  #onTimeout(sentAt: Millis, timeout: Millis): void {
    const { clock, onProblem, onSilent } = this.#parts;
    onProblem(new Error(`no response within ${timeout} ms`));
    if (this.#silence.onTimeout(sentAt, clock.now())) onSilent();
  }
}

/** Whether Redis has replied with an error; otherwise the connection failed. */
function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}
