import { countCredentials, credentialsIn, NO_CREDENTIALS } from './credential-list.ts';
import type { WriteLookup, WriteMatches, WriteQuery, WriteState, WriteView } from './key-inspection.ts';
import { formatKeyPlace, parseKeyPlace } from './key-place.ts';
import type { KeyRegistry } from './key-registry.ts';
import type { KeyedWrite } from './keyed-write.ts';
import { isUnresolved, UNKNOWN_ENDPOINT } from './keyed-write.ts';
import { isSentBefore, RankedWrites } from './ranked-writes.ts';
import type { Millis } from '../scalars.ts';
import { hasKeyDigest, idOfName, parseWriteId, withCredential, type WriteIdPattern } from './write-id.ts';

/** A `WriteQuery` with the digest of a key instead of the key. */
export interface WriteSearchQuery extends Omit<WriteQuery, 'key'> {
  readonly keyDigest?: string | undefined;
}

/**
 * Finds the newest or oldest writes that match. Runs in steps, so that a search of 100 000 writes does not delay requests; those that
 * come or go meanwhile may be found or not.
 */
export class WriteSearch {
  readonly #keys: KeyRegistry;
  readonly #query: WriteSearchQuery;
  readonly #names: Iterator<KeyedWrite>;
  /** `none`: what is given as an id is none. */
  readonly #pattern: WriteIdPattern | 'none' | undefined;
  readonly #found: RankedWrites<KeyedWrite>;
  #total = 0;

  constructor(keys: KeyRegistry, query: WriteSearchQuery) {
    this.#keys = keys;
    this.#query = query;
    this.#names = keys.names();
    this.#found = new RankedWrites(query.limit, (one, other) =>
      isSentBefore(query.order, sentAtOf(one), sentAtOf(other)),
    );
    this.#pattern = query.id === undefined ? undefined : (parseWriteId(query.id) ?? 'none');
  }

  /** Examines so many more writes, and the others of the last one's name. @returns whether there are more */
  step(maxWrites = Number.POSITIVE_INFINITY): boolean {
    const until = this.#total + maxWrites;
    while (this.#total < until) {
      const next = this.#names.next();
      if (next.done === true) return false;
      for (let write: KeyedWrite | undefined = next.value; write !== undefined; write = write.next) {
        this.#total += 1;
        if (this.#matches(write)) this.#found.add(write);
      }
    }
    return true;
  }

  get matches(): WriteMatches & { readonly total: number } {
    const writes = this.found.map((write) => toWriteView(write, this.#keys));
    return { total: this.#total, matching: this.#found.count, writes, isTruncated: false };
  }

  /** The writes that were found and have not gone since. */
  get found(): readonly KeyedWrite[] {
    return this.#found.first.filter(({ state, requestCount }) => state !== 'new' || requestCount > 0);
  }

  #matches(write: KeyedWrite): boolean {
    const { upstream, states, keyDigest } = this.#query;
    if (upstream !== undefined && write.upstream !== upstream) return false;
    if (states !== undefined && !states.includes(stateOf(write))) return false;
    if (keyDigest !== undefined && !hasKeyDigest(write.name, keyDigest)) return false;
    const pattern = this.#pattern;
    if (pattern === 'none') return false;
    return pattern === undefined || (pattern.matchesName(write.name) && pattern.matchesCredential(write.credential));
  }
}

/** Runs a whole search in one step: for few writes. */
export function searchAll(keys: KeyRegistry, query: WriteSearchQuery): WriteSearch {
  const search = new WriteSearch(keys, query);
  search.step();
  return search;
}

/** Ids that an operator has to choose from. */
export const MAX_AMBIGUOUS = 20;

export type OnlyWrite =
  | { readonly kind: 'found'; readonly write: KeyedWrite }
  | Exclude<WriteLookup, { kind: 'found' }>;

/** The only one of these writes. */
export function onlyWriteOf(found: readonly KeyedWrite[], keys: KeyRegistry): OnlyWrite {
  const [write, ...others] = found;
  if (write === undefined) return { kind: 'unknown' };
  if (others.length === 0) return { kind: 'found', write };
  return { kind: 'ambiguous', ids: found.map((each) => toWriteView(each, keys).id) };
}

export function toWriteView(write: KeyedWrite, keys: KeyRegistry): WriteView {
  const { upstream, name, credential, endpoint, requestCount, respondingFor, finalFor } = write;
  const id = idOfName(name);
  return {
    id: hasSeveral(keys, name) ? withCredential(id, credential) : id,
    upstream,
    state: stateOf(write),
    firstSentAt: sentAtOf(write),
    ...viewPlace(endpoint),
    requests: requestCount,
    responses: countCredentials(respondingFor),
    finalFor: new Set(credentialsIn(finalFor)).size,
  };
}

function viewPlace(recorded: string | undefined): Pick<WriteView, 'endpoint' | 'upstreamKey'> {
  if (recorded === undefined || recorded === UNKNOWN_ENDPOINT) return { endpoint: undefined, upstreamKey: undefined };
  const { label, account, upstreamKey } = parseKeyPlace(recorded);
  return { endpoint: formatKeyPlace({ label, account }), upstreamKey };
}

function hasSeveral(keys: KeyRegistry, name: string): boolean {
  const [, second] = keys.writesOf(name);
  return second !== undefined;
}

function stateOf(write: KeyedWrite): WriteState {
  if (write.requestCount > 0 || write.respondingFor !== NO_CREDENTIALS) return 'in_progress';
  return isUnresolved(write) ? 'unresolved' : 'answered';
}

function sentAtOf({ state, sentCount, firstSentAt }: KeyedWrite): Millis | undefined {
  return state === 'new' && sentCount === 0 ? undefined : firstSentAt;
}
