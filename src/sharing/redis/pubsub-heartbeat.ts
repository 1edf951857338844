import type { Millis, Random } from '../../core/scalars.ts';
import type { RedisClient } from './redis-connection.ts';
import type { RedisRequests } from './redis-requests.ts';

const INTERVAL: Millis = 1000;
/** More than one: after a stall of this process, a heartbeat may have arrived unread. */
const MAX_MISSED = 2;

export interface PubSubHeartbeatParts {
  readonly requests: RedisRequests;
  readonly prefix: string;
  readonly random: Random;
  /** An access rule of Redis forbids publishing, with its message; undefined: it works again. */
  readonly onPubSubLost: (cause: string | undefined) => void;
}

/**
 * Checks that published messages arrive. A connection that only receives does not notice that it is half open: so this
 * publishes a message to itself each second, and reconnects when two in a row do not arrive.
 */
export class PubSubHeartbeat {
  readonly channel: string;
  readonly #requests: RedisRequests;
  readonly #client: RedisClient;
  readonly #subscriber: RedisClient;
  readonly #onPubSubLost: PubSubHeartbeatParts['onPubSubLost'];
  #missed = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    client: RedisClient,
    subscriber: RedisClient,
    { requests, prefix, random, onPubSubLost }: PubSubHeartbeatParts,
  ) {
    this.#requests = requests;
    this.#client = client;
    this.#subscriber = subscriber;
    this.#onPubSubLost = onPubSubLost;
    this.channel = `${prefix}:echo:${random().toString(36).slice(2)}`;
  }

  open(): void {
    this.#timer = setInterval(() => this.#check(), INTERVAL).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** A heartbeat has arrived. */
  onMessage(): void {
    this.#missed = 0;
    this.#onPubSubLost(undefined);
  }

  #check(): void {
    if (this.#client.status !== 'ready' || this.#subscriber.status !== 'ready') {
      this.#missed = 0;
    } else if (this.#missed >= MAX_MISSED) {
      this.#missed = 0;
      this.#subscriber.disconnect(true);
    } else this.#publish();
  }

  /** Without a response, the connection for commands may be half open: `RedisRequests` reconnects. */
  #publish(): void {
    this.#requests.send({
      isProbe: true,
      run: async () => this.#client.publish(this.channel, '').catch((error: unknown) => this.#onError(error)),
      onDone: ({ kind }) => {
        if (kind === 'response') this.#missed += 1;
      },
    });
  }

  #onError(error: unknown): never {
    if (isPermissionError(error)) this.#onPubSubLost(error.message);
    throw error;
  }
}

/** Whether an access rule of Redis forbids a command. Rules may change, so it is retried, and Redis counts as available. */
export function isPermissionError(error: unknown): error is Error {
  return error instanceof Error && error.message.startsWith('NOPERM');
}
