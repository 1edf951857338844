import type { Redis } from 'ioredis';
import type { Clock, Millis } from '../../../core/scalars.ts';
import type { WriteName } from '../../keys/key-state-backend.ts';
import type { RedisClient } from '../redis-connection.ts';
import type { RedisKeyCommands } from './redis-key-commands.ts';
import { received, RedisLost } from './redis-name-reader.ts';
import { fromHex, isUpstreamName, namesPattern, parseNameKey, upstreamKeys } from './redis-key-names.ts';

/** Redis examines about so many keys at a time, within a millisecond. */
const STEP = 500;

/** The bounds of one search. */
export interface SearchBounds {
  /** Keys of Redis that are examined, of any program. */
  readonly maxKeys: number;
  /** Names that are returned. */
  readonly maxNames: number;
  readonly until: Millis;
}

export interface NamesQuery {
  /** Undefined for all. */
  readonly upstream: string | undefined;
  /** A glob pattern of the hexadecimal digits of a name. */
  readonly digits: string;
}

export interface RedisNameSearchParts {
  readonly client: RedisClient;
  readonly prefix: string;
  readonly clock: Clock;
  readonly commands: RedisKeyCommands;
}

/** Finds names in Redis in short steps, each name once. Names that come or go meanwhile may be found or not. */
export class RedisNameSearch {
  readonly #parts: RedisNameSearchParts;
  readonly #bounds: SearchBounds;
  readonly #found = new Set<string>();
  #examined = 0;
  #isTruncated = false;

  constructor(parts: RedisNameSearchParts, bounds: SearchBounds) {
    this.#parts = parts;
    this.#bounds = bounds;
  }

  /** It has ended at one of its bounds. */
  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  /** Yields the matching names of all that are kept. @throws RedisLost */
  async *all({ upstream, digits }: NamesQuery): AsyncGenerator<readonly WriteName[]> {
    const { client, prefix } = this.#parts;
    if (upstream !== undefined && !isUpstreamName(upstream)) return;
    const pattern = namesPattern(prefix, upstream, digits);
    const nodes = mastersOf(client);
    if (nodes.length === 0) throw new RedisLost();
    for (const node of nodes) {
      const scan = (cursor: string) => node.scan(cursor, 'MATCH', pattern, 'COUNT', STEP);
      yield* this.#scan(scan, ([, keys]) => keys.flatMap((key) => parseNameKey(prefix, key) ?? []));
    }
  }

  /** Yields the matching names with unresolved writes or claims at these upstreams. @throws RedisLost */
  async *open(upstreams: readonly string[], digits: string): AsyncGenerator<readonly WriteName[]> {
    const { client, prefix } = this.#parts;
    for (const upstream of upstreams.filter(isUpstreamName)) {
      const { open } = upstreamKeys(prefix, upstream);
      const scan = (cursor: string) => client.zscan(open, cursor, 'MATCH', digits, 'COUNT', STEP);
      // Each member is followed by its score.
      yield* this.#scan(scan, ([, members]) =>
        members.flatMap((hex, i) => (i % 2 === 0 ? { upstream, name: fromHex(hex) } : [])),
      );
    }
  }

  async *#scan(
    scan: (cursor: string) => Promise<ScanReply>,
    namesIn: (reply: ScanReply) => readonly WriteName[],
  ): AsyncGenerator<readonly WriteName[]> {
    const { commands, clock } = this.#parts;
    let cursor = '0';
    do {
      if (this.#isTruncated) return;
      const from = cursor;
      const reply = await received<ScanReply>((onReply) => commands.ask(() => scan(from), onReply));
      [cursor] = reply;
      this.#examined += STEP;
      const names = this.#take(namesIn(reply));
      if (names.length > 0) yield names;
      const { maxKeys, until } = this.#bounds;
      if (cursor !== '0' && (this.#examined >= maxKeys || clock.now() >= until)) this.#isTruncated = true;
    } while (cursor !== '0');
  }

  /** Those that were not found before, as far as the bound allows. */
  #take(names: readonly WriteName[]): readonly WriteName[] {
    const taken: WriteName[] = [];
    for (const each of names) {
      const key = `${each.upstream}\n${each.name}`;
      if (this.#found.has(key)) continue;
      if (this.#found.size >= this.#bounds.maxNames) {
        this.#isTruncated = true;
        break;
      }
      this.#found.add(key);
      taken.push(each);
    }
    return taken;
  }
}

type ScanReply = [cursor: string, elements: string[]];

/** Each has a part of the names. */
function mastersOf(client: RedisClient): readonly Redis[] {
  return 'nodes' in client ? client.nodes('master') : [client];
}
