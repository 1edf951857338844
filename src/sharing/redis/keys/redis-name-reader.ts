import { NameSession } from '../../../core/idempotency/name-session.ts';
import type { Clock } from '../../../core/scalars.ts';
import type { StoredName, WriteName } from '../../keys/key-state-backend.ts';
import { toStored } from './redis-key-backend.ts';
import { type Lost, type RedisKeyCommands, REPLY_PARTS } from './redis-key-commands.ts';

export interface RedisNameReaderParts {
  readonly commands: RedisKeyCommands;
  readonly clock: Clock;
  readonly onProblem: (error: unknown) => void;
}

/** A name as it is now, with times of Redis' clock. Claims whose lease has ended count as abandoned. */
export interface ReadName {
  readonly name: WriteName;
  readonly stored: StoredName;
  readonly session: NameSession;
}

/** Names, and bytes of them, that Redis reads in one step. */
const NAMES_A_STEP = 50;
const BYTES_A_STEP = 1_000_000;

/** Redis did not respond. */
export class RedisLost extends Error {}

/** Reads names in steps. */
export class RedisNameReader {
  readonly #parts: RedisNameReaderParts;

  constructor(parts: RedisNameReaderParts) {
    this.#parts = parts;
  }

  /** Yields some at a time. Names that cannot be decoded are left out. @throws RedisLost */
  async *read(names: readonly WriteName[]): AsyncGenerator<readonly ReadName[]> {
    for (const [upstream, some] of Map.groupBy(names, (each) => each.upstream)) {
      for (let next = 0; next < some.length; ) {
        const step = some.slice(next, next + NAMES_A_STEP);
        const reply = await this.#readStep(upstream, step);
        const count = Math.floor(reply.length / REPLY_PARTS);
        if (count === 0) throw new RedisLost();
        next += count;
        yield step.slice(0, count).flatMap((name, i) => {
          const parts = reply.slice(i * REPLY_PARTS, (i + 1) * REPLY_PARTS);
          const stored = toStored(name, parts, 0, this.#parts.onProblem);
          return stored === undefined ? [] : { name, stored, session: this.open(name, stored) };
        });
      }
    }
  }

  /** @throws RedisLost if there is no response, or none that can be decoded */
  async readOne(name: WriteName): Promise<StoredName> {
    for await (const [read] of this.read([name])) if (read !== undefined) return read.stored;
    throw new RedisLost();
  }

  open({ name }: WriteName, { state, gone }: StoredName): NameSession {
    const session = new NameSession(name, state, this.#parts.clock);
    session.abandon((owner) => gone.has(owner));
    return session;
  }

  #readStep(upstream: string, names: readonly WriteName[]): Promise<readonly string[]> {
    const { commands } = this.#parts;
    const of = names.map(({ name }) => name);
    return received((onReply) => commands.run('tidegateReadNames', upstream, of, [String(BYTES_A_STEP)], onReply));
  }
}

/** Resolves with a response. @throws RedisLost if there is none */
export function received<T>(send: (onReply: (reply: T | Lost) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    send((reply) => {
      if (reply === 'unsent' || reply === 'unknown') reject(new RedisLost());
      else resolve(reply);
    });
  });
}
