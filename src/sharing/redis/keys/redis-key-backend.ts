import type { Millis } from '../../../core/scalars.ts';
import type {
  KeyStateBackend,
  NameChange,
  RenewedLeases,
  StoredName,
  SwapResult,
  WriteName,
} from '../../keys/key-state-backend.ts';
import { NO_VERSION } from '../../keys/key-state-backend.ts';
import { decodeNameState, encodeNameState } from './name-state-codec.ts';
import type { Lost, RedisKeyCommands } from './redis-key-commands.ts';
import { announcementOf, toHex } from './redis-key-names.ts';

export interface RedisKeyBackendParts {
  readonly commands: RedisKeyCommands;
  /** This process. */
  readonly owner: string;
  /** The channel of announcements. */
  readonly channel: string;
  readonly onProblem: (error: unknown) => void;
  /** How far the time of an upstream's keys in Redis is ahead of the times of states, once Redis has responded. */
  readonly ahead: (upstream: string) => Millis;
}

/** Stores the state of names in Redis. */
export class RedisKeyBackend implements KeyStateBackend {
  readonly leaseTime: Millis = 10_000;
  readonly #parts: RedisKeyBackendParts;

  constructor(parts: RedisKeyBackendParts) {
    this.#parts = parts;
  }

  read(name: WriteName, awaits: boolean, onRead: (found: StoredName | undefined) => void): void {
    this.#parts.commands.run('tidegateReadName', name.upstream, [name.name], [awaits ? '1' : '0'], (reply) =>
      onRead(typeof reply === 'string' ? undefined : this.#toStored(name, reply)),
    );
  }

  swap(name: WriteName, change: NameChange, onSwapped: (result: SwapResult) => void): void {
    const {
      expected,
      next,
      state,
      owners,
      unresolvedOwner,
      keptFor,
      openFor = 0,
      isNews,
      isForgotten = false,
    } = change;
    const { commands, owner, channel } = this.#parts;
    // The time is not known before the first answer.
    if (!commands.timeOf(name.upstream).isKnown) {
      return this.read(name, false, (found) => {
        if (found === undefined) onSwapped({ kind: 'lost', isUnsent: true });
        else this.swap(name, change, onSwapped);
      });
    }
    const client = String(unresolvedOwner ?? '');
    const text = state === undefined ? '' : encodeNameState(state, this.#parts.ahead(name.upstream));
    const args = [
      ...[expected, next, text, [...owners].join(' '), client, String(Math.ceil(keptFor))],
      ...[owner, String(this.leaseTime), channel, announcementOf(name), isNews ? '1' : '0', toHex(name.name)],
      ...[isForgotten ? '1' : '0', String(commands.counts.max.unresolved), String(commands.counts.max.answered)],
      String(Math.ceil(openFor)),
    ];
    const onReply = (reply: readonly string[] | Lost): void => {
      if (typeof reply === 'string') return onSwapped({ kind: 'lost', isUnsent: reply === 'unsent' });
      if (reply[0] === next) {
        commands.counts.onReply(name.upstream, reply[1] ?? '');
        return onSwapped({ kind: 'stored' });
      }
      const found = this.#toStored(name, reply);
      onSwapped(found === undefined ? { kind: 'lost', isUnsent: true } : { kind: 'changed', found });
    };
    const clients = client === '' ? 'none' : { client };
    commands.run('tidegateSwapName', name.upstream, [name.name], args, onReply, clients);
  }

  hasUnresolved(upstream: string, onFound: (isUnresolved: boolean | undefined) => void): void {
    this.#parts.commands.count(upstream, (counted) => onFound(counted?.hasUnresolved));
  }

  renew(upstream: string, names: readonly string[], onRenewed: (renewed: RenewedLeases | undefined) => void): void {
    const { commands, owner } = this.#parts;
    commands.run('tidegateRenewLeases', upstream, names, [owner, String(this.leaseTime)], (reply) => {
      if (typeof reply === 'string') return onRenewed(undefined);
      const missing = new Set(reply[1]?.split(' '));
      onRenewed({ missing: new Set(names.filter((_, i) => missing.has(String(i + 1)))) });
    });
  }

  #toStored(name: WriteName, reply: readonly string[]): StoredName | undefined {
    const { ahead, onProblem } = this.#parts;
    return toStored(name, reply, ahead(name.upstream), onProblem);
  }
}

/** What a script returns of a name; undefined if that cannot be read. */
export function toStored(
  name: WriteName,
  [version = '', text = '', gone = '', forgets = '']: readonly string[],
  ahead: Millis,
  onProblem: (error: unknown) => void,
): StoredName | undefined {
  try {
    const state = text === '' ? undefined : decodeNameState(text, name, ahead);
    return {
      version: version || NO_VERSION,
      state,
      gone: new Set(gone === '' ? [] : gone.split(' ')),
      forgets: Number(forgets),
    };
  } catch (error) {
    onProblem(error);
    return undefined;
  }
}
