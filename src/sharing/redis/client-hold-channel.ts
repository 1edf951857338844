import type { ClientHold } from '../../core/limits/client-holds.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { RedisClient } from './redis-connection.ts';

export interface ClientHoldChannelParts {
  readonly prefix: string;
  readonly channel: string;
  readonly clock: Clock;
  readonly onRequest: (op: 'hold', result: 'ok' | 'error', took: Millis) => void;
  readonly onHold: (hold: ClientHold) => void;
  readonly onProblem: (error: unknown) => void;
}

/** Holds within this time share one message. */
const PUBLISH_WITHIN: Millis = 10;
/** The maximum number of stored holds: those that end last are kept. */
const MAX_KEPT = 10_000;
const KEPT_FOR: Millis = 86_400_000;

/**
 * Publishes holds to the other processes, and stores them for processes that start later. Stored times are those of Redis'
 * clock, the only one that the processes have in common. If it is set back, nobody knows when the stored holds end: they are dropped.
 */
export class ClientHoldChannel {
  readonly channel: string;
  readonly #key: string;
  /** Redis' time when the last holds were stored. */
  readonly #storedAtKey: string;
  readonly #client: RedisClient;
  readonly #parts: ClientHoldChannelParts;
  #unpublished: ClientHold[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(client: RedisClient, parts: ClientHoldChannelParts) {
    this.#client = client;
    this.#parts = parts;
    this.channel = parts.channel;
    this.#key = `${parts.prefix}:{holds}`;
    this.#storedAtKey = `${this.#key}:at`;
  }

  publish(hold: ClientHold): void {
    this.#unpublished.push(hold);
    this.#timer ??= setTimeout(() => void this.#flush(), PUBLISH_WITHIN).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  /** Handles a message of another process. */
  onMessage(message: string): void {
    const now = this.#parts.clock.now();
    for (const line of message.split('\n')) {
      const hold = parseHold(line, now);
      if (hold !== undefined) this.#parts.onHold(hold);
    }
  }

  /** Loads the holds that were published before this process subscribed. */
  async load(): Promise<void> {
    const { time, isSetBack } = await this.#readClock();
    if (isSetBack) return;
    const kept = await this.#client.zrangebyscore(this.#key, time, '+inf', 'WITHSCORES', 'LIMIT', 0, MAX_KEPT);
    const now = this.#parts.clock.now();
    for (let i = 0; i + 1 < kept.length; i += 2) {
      this.#parts.onHold({ client: kept[i] ?? '', until: now + Number(kept[i + 1]) - time });
    }
  }

  async #flush(): Promise<void> {
    this.#timer = undefined;
    const { clock, onRequest, onProblem } = this.#parts;
    const holds = this.#unpublished;
    this.#unpublished = [];
    const askedAt = clock.now();
    try {
      await this.#client.publish(this.channel, holds.map((hold) => formatHold(hold, askedAt)).join('\n'));
      await this.#keep(holds.filter(({ until }) => until > askedAt));
      onRequest('hold', 'ok', clock.now() - askedAt);
    } catch (error) {
      onProblem(error);
      onRequest('hold', 'error', clock.now() - askedAt);
    }
  }

  /** Stores holds for processes that start later. */
  async #keep(holds: readonly ClientHold[]): Promise<void> {
    if (holds.length === 0) return;
    const { time, isSetBack } = await this.#readClock();
    const now = this.#parts.clock.now();
    const key = this.#key;
    const pipeline = this.#client
      .pipeline()
      .zremrangebyscore(key, '-inf', isSetBack ? '+inf' : time)
      .zadd(key, 'GT', ...holds.flatMap(({ client, until }) => [time + Math.ceil(until - now), client]))
      .zremrangebyrank(key, 0, -MAX_KEPT - 1)
      .pexpire(key, KEPT_FOR)
      .set(this.#storedAtKey, time, 'PX', KEPT_FOR);
    for (const [error] of (await pipeline.exec()) ?? []) if (error !== null) throw error;
  }

  /** Redis' time, in milliseconds since 1970, and whether it has been set back since the last holds were stored. */
  async #readClock(): Promise<{ readonly time: Millis; readonly isSetBack: boolean }> {
    // In this order: another process may store holds in between.
    const [storedAt, [seconds, micros]] = await Promise.all([this.#client.get(this.#storedAtKey), this.#client.time()]);
    const time = 1000 * Number(seconds) + Math.floor(Number(micros) / 1000);
    return { time, isSetBack: Number(storedAt ?? 0) > time };
  }
}

/** The remaining time in milliseconds, the allowance, and the client: `1500 1 up\0client`. */
function formatHold({ client, until, allowance }: ClientHold, now: Millis): string {
  return `${Math.max(0, Math.ceil(until - now))} ${allowance ?? 1} ${client}`;
}

const HOLD_LINE = /^(\d+) ([\d.e-]+) (.+)$/;

/** @returns undefined for a line of another format: other programs may publish too */
function parseHold(line: string, now: Millis): ClientHold | undefined {
  const [, wait, allowance, client] = HOLD_LINE.exec(line) ?? [];
  if (client === undefined) return undefined;
  const hold = { client, until: wait === '0' ? Number.NEGATIVE_INFINITY : now + Number(wait) };
  return Number(allowance) < 1 ? { ...hold, allowance: Number(allowance) } : hold;
}
