import type { Clock, Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Hold } from '../workers/worker-protocol.ts';
import type { RedisClient } from './redis-connection.ts';

export interface HoldsParts {
  readonly prefix: string;
  readonly channel: string;
  readonly clock: Clock;
  readonly onRequest: (op: 'hold', result: 'ok' | 'error', took: Millis) => void;
  readonly onHold: (hold: Hold) => void;
  readonly onProblem: (error: unknown) => void;
}

/** Told together. */
const WITHIN: Millis = 10;
/** Remembered for processes that come later: the longest. */
const MOST = 10_000;
const KEPT_FOR: Millis = 86_400_000;

/**
 * Clients that are to wait, whichever process they come to: published to those that are there, and kept for those that
 * come, by Redis' clock: processes have no other in common.
 */
export class Holds {
  readonly channel: string;
  readonly #key: string;
  readonly #client: RedisClient;
  readonly #parts: HoldsParts;
  #untold: Hold[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(client: RedisClient, parts: HoldsParts) {
    this.#client = client;
    this.#parts = parts;
    this.channel = parts.channel;
    this.#key = `${parts.prefix}:{holds}`;
  }

  tell(hold: Hold): void {
    this.#untold.push(hold);
    this.#timer ??= setTimeout(() => void this.#flush(), WITHIN).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  /** As another process has published. */
  hear(message: string): void {
    const now = this.#parts.clock.now();
    for (const line of message.split('\n')) {
      const hold = readLine(line, now);
      if (hold !== undefined) this.#parts.onHold(hold);
    }
  }

  /** What others had told before this one came. */
  async learn(): Promise<void> {
    const time = await this.#time();
    const kept = await this.#client.zrangebyscore(this.#key, time, '+inf', 'WITHSCORES', 'LIMIT', 0, MOST);
    const now = this.#parts.clock.now();
    for (let i = 0; i + 1 < kept.length; i += 2) {
      this.#parts.onHold({ client: kept[i] ?? '', until: now + Number(kept[i + 1]) - time });
    }
  }

  async #flush(): Promise<void> {
    this.#timer = undefined;
    const { clock, onRequest, onProblem } = this.#parts;
    const holds = this.#untold;
    this.#untold = [];
    const askedAt = clock.now();
    try {
      await this.#client.publish(this.channel, holds.map((hold) => writeLine(hold, askedAt)).join('\n'));
      await this.#keep(holds.filter(({ until }) => until > askedAt));
      onRequest('hold', 'ok', clock.now() - askedAt);
    } catch (error) {
      onProblem(error);
      onRequest('hold', 'error', clock.now() - askedAt);
    }
  }

  /** For those that come. */
  async #keep(holds: readonly Hold[]): Promise<void> {
    if (holds.length === 0) return;
    const time = await this.#time();
    const now = this.#parts.clock.now();
    const key = this.#key;
    const pipeline = this.#client
      .pipeline()
      .zremrangebyscore(key, '-inf', time)
      .zadd(key, 'GT', ...holds.flatMap(({ client, until }) => [time + Math.ceil(until - now), client]))
      .zremrangebyrank(key, 0, -MOST - 1)
      .pexpire(key, KEPT_FOR);
    for (const [error] of (await pipeline.exec()) ?? []) if (error !== null) throw error;
  }

  /** Redis', in milliseconds since 1970. */
  async #time(): Promise<Millis> {
    const [seconds, micros] = await this.#client.time();
    return 1000 * Number(seconds) + Math.floor(Number(micros) / 1000);
  }
}

/** For how long it is to wait, in milliseconds, what it is allowed, and who: `1500 1 up\0client`. */
function writeLine({ client, until, allowance }: Hold, now: Millis): string {
  return `${Math.max(0, Math.ceil(until - now))} ${allowance ?? 1} ${client}`;
}

const LINE = /^(\d+) ([\d.e-]+) (.+)$/;

/** @returns undefined for what none of us has written: anybody may publish */
function readLine(line: string, now: Millis): Hold | undefined {
  const [, wait, allowance, client] = LINE.exec(line) ?? [];
  if (client === undefined) return undefined;
  const hold = { client, until: wait === '0' ? Number.NEGATIVE_INFINITY : now + Number(wait) };
  return Number(allowance) < 1 ? { ...hold, allowance: Number(allowance) } : hold;
}
