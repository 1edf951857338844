import type {
  KeyInspection,
  KeysUnavailable,
  WriteLookup,
  WriteMatches,
  WriteQuery,
  WriteRemoval,
  WriteView,
} from '../../../core/idempotency/key-inspection.ts';
import { isSentBefore, RankedWrites } from '../../../core/idempotency/ranked-writes.ts';
import type { ResponseStore } from '../../../core/idempotency/response-store.ts';
import { parseWriteId, responseWriteOf, type WriteIdPattern } from '../../../core/idempotency/write-id.ts';
import { MAX_AMBIGUOUS, type WriteSearchQuery } from '../../../core/idempotency/write-search.ts';
import type { Clock, Millis } from '../../../core/scalars.ts';
import type { WriteName } from '../../keys/key-state-backend.ts';
import { RedisKeyBackend } from './redis-key-backend.ts';
import type { RedisKeyCommands, RedisKeyConnection } from './redis-key-commands.ts';
import { toHex } from './redis-key-names.ts';
import { removeWrite } from './redis-key-removal.ts';
import { type ReadName, RedisLost, RedisNameReader } from './redis-name-reader.ts';
import { RedisNameSearch, type SearchBounds } from './redis-name-search.ts';

export interface RedisKeyInspectionParts {
  readonly connection: RedisKeyConnection;
  readonly commands: RedisKeyCommands;
  readonly prefix: string;
  /** This process. */
  readonly owner: string;
  readonly clock: Clock;
  /** Returns the digest of a key, as it stands at the end of the names of writes. */
  readonly digestKey: (key: string) => string;
  /** The upstreams of the configuration. */
  readonly upstreams: () => readonly string[];
  readonly nextVersion: () => string;
  /** That are kept for repeats. */
  readonly responses: Pick<ResponseStore, 'remove'>;
  readonly bounds?: Partial<InspectionBounds>;
}

export interface InspectionBounds extends Omit<SearchBounds, 'until'> {
  readonly within: Millis;
  /** How long a search waits for others of this process at most. */
  readonly startedWithin: Millis;
}

/** `tidegate keys` waits for a response for 5 s. */
const BOUNDS: InspectionBounds = { maxKeys: 10_000_000, maxNames: 20_000, within: 3000, startedWithin: 1000 };

const OPEN: ReadonlySet<string> = new Set(['in_progress', 'unresolved']);

/** The keys that replicas share over Redis, for an operator. Times are those of Redis, so that all replicas answer alike. */
export class RedisKeyInspection implements KeyInspection {
  readonly timeOrigin: Millis = 0;
  readonly #parts: RedisKeyInspectionParts;
  readonly #bounds: InspectionBounds;
  readonly #backend: RedisKeyBackend;
  readonly #reader: RedisNameReader;
  /** Resolves when the searches so far have ended: one at a time leaves Redis and this process time for requests. */
  #searches: Promise<unknown> | undefined;

  constructor(parts: RedisKeyInspectionParts) {
    this.#parts = parts;
    this.#bounds = { ...BOUNDS, ...parts.bounds };
    const { channel, onProblem } = parts.connection;
    this.#backend = new RedisKeyBackend({ ...parts, channel, onProblem, ahead: () => 0 });
    this.#reader = new RedisNameReader({ ...parts, onProblem });
  }

  async list({ key, ...query }: WriteQuery): Promise<WriteMatches | KeysUnavailable> {
    const { digestKey, upstreams } = this.#parts;
    const { upstream, states, id } = query;
    const pattern = id === undefined ? undefined : parseWriteId(id);
    if (id !== undefined && pattern === undefined) return NO_MATCHES;
    const keyDigest = key === undefined ? undefined : digestKey(key);
    const digits = `${pattern?.digits ?? ''}*${keyDigest === undefined ? '' : toHex(keyDigest)}`;
    const isEveryName = upstream === undefined && states === undefined && digits === '*';
    return this.#search(async (search) => {
      // Those that are open come first, so that they are found among any number of others.
      const open = search.open(upstream === undefined ? upstreams() : [upstream], digits);
      const all = search.all({ upstream, digits });
      const sources = states === undefined ? [open, all] : states.every((state) => OPEN.has(state)) ? [open] : [all];
      const { total, ...matches } = await this.#collect(search, sources, { ...query, keyDigest });
      return { ...matches, total: isEveryName && !matches.isTruncated ? total : undefined };
    });
  }

  async find(id: string): Promise<WriteLookup | KeysUnavailable> {
    const found = await this.#locate(id);
    return found.kind === 'found' ? { kind: 'found', write: found.write } : found;
  }

  async forget(id: string): Promise<WriteRemoval | KeysUnavailable> {
    const found = await this.#locate(id);
    if (found.kind !== 'found') return found;
    const { nextVersion, responses } = this.#parts;
    const parts = { backend: this.#backend, reader: this.#reader, nextVersion };
    const removal = await removeWrite(found.name, id, parts).catch((error: unknown) => this.#toUnavailable(error));
    const isForgotten = removal.kind === 'forgotten' || removal.kind === 'unconfirmed';
    if (isForgotten) responses.remove(responseWriteOf(found.name.name));
    return removal;
  }

  async #collect(
    search: RedisNameSearch,
    sources: readonly AsyncIterable<readonly WriteName[]>[],
    query: WriteSearchQuery,
  ): Promise<WriteMatches> {
    const ranked = new RankedWrites<WriteView>(query.limit, (one, other) => {
      if (one.firstSentAt === other.firstSentAt) return one.id < other.id;
      return isSentBefore(query.order, one.firstSentAt, other.firstSentAt);
    });
    let [total, matching, unreadable] = [0, 0, 0];
    for await (const some of joined(sources)) {
      unreadable += some.length;
      for await (const read of this.#reader.read(some)) {
        unreadable -= read.length;
        for (const { session } of read) {
          const matches = session.search(query);
          total += matches.total;
          matching += matches.matching;
          for (const write of matches.writes) ranked.add(write);
        }
      }
    }
    return { total, matching, writes: ranked.first, isTruncated: search.isTruncated || unreadable > 0 };
  }

  /** The only write with this id, and its name. */
  async #locate(id: string): Promise<LocatedWrite | UnclearLookup> {
    const pattern = parseWriteId(id);
    if (pattern === undefined) return { kind: 'unknown' };
    return this.#search(async (search) => {
      const digits = `${pattern.digits}*`;
      const located: LocatedWrite[] = [];
      const sources = [search.open(this.#parts.upstreams(), digits), search.all({ upstream: undefined, digits })];
      for await (const some of joined(sources)) {
        for await (const read of this.#reader.read(some)) located.push(...writesWith(id, read));
        if (located.length >= (pattern.isWhole ? 1 : MAX_AMBIGUOUS)) return onlyOf(located, pattern, false);
      }
      return onlyOf(located, pattern, search.isTruncated);
    });
  }

  async #search<T>(run: (search: RedisNameSearch) => Promise<T>): Promise<T | KeysUnavailable> {
    const before = this.#searches;
    const own = Promise.withResolvers<undefined>();
    this.#searches = own.promise;
    try {
      const { clock, connection } = this.#parts;
      const latest = clock.now() + this.#bounds.startedWithin;
      await before;
      if (before !== undefined && clock.now() > latest) return BUSY;
      const until = clock.now() + this.#bounds.within;
      return await run(new RedisNameSearch({ ...this.#parts, client: connection.client }, { ...this.#bounds, until }));
    } catch (error) {
      return this.#toUnavailable(error);
    } finally {
      if (this.#searches === own.promise) this.#searches = undefined;
      own.resolve(undefined);
    }
  }

  #toUnavailable(error: unknown): KeysUnavailable {
    if (!(error instanceof RedisLost)) throw error;
    const cause = this.#parts.connection.problem();
    return { kind: 'unavailable', why: `Redis, which has the keys of all replicas, does not respond: ${cause}.` };
  }
}

async function* joined<T>(sources: readonly AsyncIterable<T>[]): AsyncGenerator<T> {
  for (const source of sources) yield* source;
}

function writesWith(id: string, read: readonly ReadName[]): readonly LocatedWrite[] {
  return read.flatMap(({ name, session }) => {
    const { writes } = session.search({ id, order: 'newest', limit: MAX_AMBIGUOUS });
    return writes.map((write) => ({ kind: 'found' as const, name, write }));
  });
}

interface LocatedWrite {
  readonly kind: 'found';
  readonly name: WriteName;
  readonly write: WriteView;
}

type UnclearLookup = Exclude<WriteLookup, { readonly kind: 'found' }> | KeysUnavailable;

const NO_MATCHES: WriteMatches = { total: undefined, matching: 0, writes: [], isTruncated: false };

const BUSY: KeysUnavailable = {
  kind: 'unavailable',
  why: 'Other searches of the keys in Redis take all the time of this one. Try again.',
};

const NOT_ALL_SEARCHED = 'Redis has more keys than one request searches, and';

function onlyOf(
  located: readonly LocatedWrite[],
  { isWhole }: WriteIdPattern,
  isTruncated: boolean,
): LocatedWrite | UnclearLookup {
  const [only, ...others] = located;
  const ids = located.slice(0, MAX_AMBIGUOUS).map(({ write }) => write.id);
  if (others.length > 0) return { kind: 'ambiguous', ids };
  if (only !== undefined && (isWhole || !isTruncated)) return only;
  if (!isTruncated) return { kind: 'unknown' };
  const why = isWhole ? 'this id is not among those searched.' : 'others may begin like this: use a whole id.';
  return { kind: 'unavailable', why: `${NOT_ALL_SEARCHED} ${why}` };
}
