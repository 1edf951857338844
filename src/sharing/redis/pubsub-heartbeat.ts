import type { Millis, Random } from '../../core/exchange/attempt-outcome.ts';
import type { RedisClient } from './redis-connection.ts';

const EVERY: Millis = 1000;
/** So many in a row: after a stall of this process, a single one may just not have been read yet. */
const UNHEARD = 2;

export interface EchoParts {
  readonly prefix: string;
  readonly random: Random;
  /** Redis does not let us say it, or does. */
  readonly onDeaf: (cause: string | undefined) => void;
}

/**
 * Whether what is published is still heard. Who only listens does not notice that its connection is one to nobody: that
 * is found out by saying something to oneself, and another connection is made.
 */
export class Echo {
  readonly channel: string;
  readonly #client: RedisClient;
  readonly #ears: RedisClient;
  readonly #onDeaf: EchoParts['onDeaf'];
  #unheard = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(client: RedisClient, ears: RedisClient, { prefix, random, onDeaf }: EchoParts) {
    this.#client = client;
    this.#ears = ears;
    this.#onDeaf = onDeaf;
    this.channel = `${prefix}:echo:${random().toString(36).slice(2)}`;
  }

  open(): void {
    this.#timer = setInterval(() => void this.#ask(), EVERY).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** What was said is heard. */
  hear(): void {
    this.#unheard = 0;
    this.#onDeaf(undefined);
  }

  async #ask(): Promise<void> {
    if (this.#client.status !== 'ready' || this.#ears.status !== 'ready') {
      this.#unheard = 0;
    } else if (this.#unheard >= UNHEARD) {
      this.#unheard = 0;
      this.#ears.disconnect(true);
    } else if (await this.#say()) this.#unheard += 1;
  }

  /** Returns whether Redis has taken it; why not, whoever asks it for tokens is told, unless it is this that is forbidden. */
  async #say(): Promise<boolean> {
    try {
      await this.#client.publish(this.channel, '');
      return true;
    } catch (error) {
      if (isForbidden(error)) this.#onDeaf(error.message);
      return false;
    }
  }
}

/** By the access list of Redis, which may change: it is tried again, and is no sign that Redis is away. */
export function isForbidden(error: unknown): error is Error {
  return error instanceof Error && error.message.startsWith('NOPERM');
}
