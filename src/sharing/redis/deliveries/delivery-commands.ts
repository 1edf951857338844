import type { Millis } from '../../../core/scalars.ts';
import type { RedisKeyConnection } from '../keys/redis-key-commands.ts';
import type { RedisResult } from '../redis-requests.ts';
import { DELIVERY_FIELDS } from './delivery-fields.ts';
import { END_WAITING, LIST, POLL, RETRY } from './delivery-operator-scripts.ts';
import { ADD_DELIVERY, CHANGE, RENEW, TAKE } from './delivery-scripts.ts';

/** The layout of what is stored. */
const LAYOUT = 'd2';

/** Of a message that is stored, or that is read to be sent, which takes longer than what Redis knows of a limit. */
const TIMEOUT: Millis = 1000;

const SCRIPTS = {
  tidegateAddDelivery: ADD_DELIVERY,
  tidegateTakeDeliveries: TAKE,
  tidegateChangeDelivery: CHANGE,
  tidegateRenewDeliveries: RENEW,
  tidegateEndDelivery: END_WAITING,
  tidegateRetryDelivery: RETRY,
  tidegatePollDeliveries: POLL,
  tidegateListDeliveries: LIST,
};

export type DeliveryScript = keyof typeof SCRIPTS;

export interface DeliveryCommandsParts {
  readonly connection: Pick<RedisKeyConnection, 'client' | 'requests' | 'problem'>;
  readonly prefix: string;
  /** The maximum time for a response, at least. */
  readonly timeout?: Millis;
}

export interface DeliveryScriptCall {
  readonly script: DeliveryScript;
  /** What it is about, besides the counters. */
  readonly keys?: readonly string[];
  readonly args: readonly (string | Buffer)[];
  /** Strings of the reply are bytes. */
  readonly isBinary?: boolean;
  /** A response has arrived after its time. */
  readonly onLate?: (reply: unknown) => void;
}

/** The commands about deliveries, each with a bounded time for its response. */
export class DeliveryCommands {
  readonly #parts: DeliveryCommandsParts;
  readonly #base: string;

  constructor(parts: DeliveryCommandsParts) {
    this.#parts = parts;
    this.#base = `${parts.prefix}:{deliveries}:${LAYOUT}:`;
    for (const [name, lua] of Object.entries(SCRIPTS)) parts.connection.client.defineCommand(name, { lua });
  }

  /** Why Redis does not respond, without secrets. */
  get problem(): string {
    return this.#parts.connection.problem();
  }

  keyOf(id: string): string {
    return `${this.#base}of:${id}`;
  }

  /** Calls back once, after it has returned. */
  run(call: DeliveryScriptCall, onDone: (result: RedisResult<unknown>) => void): void {
    const { script, keys = [], args, isBinary = false, onLate } = call;
    const { client } = this.#parts.connection;
    const command: unknown = Reflect.get(client, isBinary ? `${script}Buffer` : script);
    if (typeof command !== 'function') throw new TypeError(`ioredis has not defined the command ${script}`);
    const all = [keys.length + 1, `${this.#base}counters`, ...keys, ...args];
    const run = async (): Promise<unknown> => {
      const reply: unknown = await Reflect.apply(command, client, all);
      return reply;
    };
    this.#send(run, onDone, onLate);
  }

  /** The values of `DELIVERY_FIELDS`. */
  fields(id: string): Promise<RedisResult<unknown>> {
    const { client } = this.#parts.connection;
    return this.#ask(() => client.hmget(this.keyOf(id), ...DELIVERY_FIELDS));
  }

  bytes(id: string, field: 'message' | 'result'): Promise<RedisResult<Buffer | null>> {
    const { client } = this.#parts.connection;
    return this.#ask(() => client.hgetBuffer(this.keyOf(id), field));
  }

  #ask<T>(run: () => Promise<T>): Promise<RedisResult<T>> {
    return new Promise((resolve) => this.#send(run, resolve));
  }

  #send<T>(run: () => Promise<T>, onDone: (result: RedisResult<T>) => void, onLate?: (reply: T) => void): void {
    const { connection, timeout = 0 } = this.#parts;
    let isLate = false;
    connection.requests.send<T>({
      ...{ op: 'delivery', timeout: Math.max(TIMEOUT, timeout), run },
      onReceived: (reply) => isLate && onLate?.(reply),
      onDone: (result) => {
        isLate = result.kind === 'lost';
        onDone(result);
      },
    });
  }
}
