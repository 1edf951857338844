import type { KeysUnavailable, WriteRemoval } from '../../../core/idempotency/key-inspection.ts';
import { type NameSession, ownersOf } from '../../../core/idempotency/name-session.ts';
import type { Millis } from '../../../core/scalars.ts';
import type { KeyStateBackend, SwapResult, WriteName } from '../../keys/key-state-backend.ts';
import { RedisLost, type RedisNameReader } from './redis-name-reader.ts';

export interface RedisKeyRemovalParts {
  /** Its times are those of Redis' clock. */
  readonly backend: Pick<KeyStateBackend, 'swap'>;
  readonly reader: RedisNameReader;
  /** Never used before. */
  readonly nextVersion: () => string;
}

/** How long Redis remembers at least that a name was forgotten: longer than a request lasts. */
const REMEMBERED_FOR: Millis = 60 * 60 * 1000;
const MAX_ATTEMPTS = 10;

const CHANGED_BY_OTHERS: KeysUnavailable = {
  kind: 'unavailable',
  why: 'Requests change what is known of the key all the time: it is not forgotten. Try again.',
};

/** Forgets a write of a name, unless a request of any process uses it. @throws RedisLost if nothing was changed */
export async function removeWrite(
  name: WriteName,
  id: string,
  { backend, reader, nextVersion }: RedisKeyRemovalParts,
): Promise<WriteRemoval | KeysUnavailable> {
  let known = await reader.readOne(name);
  const { forgets } = known;
  let mayHaveTakenEffect = false;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const session = reader.open(name, known);
    const removal = session.forget(id);
    if (removal.kind !== 'forgotten') return removal;
    const next = nextVersion();
    const result = await swap(name, known.version, next, session, backend);
    if (result.kind === 'stored') return removal;
    if (result.kind === 'lost') {
      if (result.isUnsent) throw new RedisLost();
      const now = await reader.readOne(name).catch(() => undefined);
      if (now === undefined) return { kind: 'unconfirmed', write: removal.write };
      mayHaveTakenEffect = true;
      known = now;
    } else known = result.found;
    if (mayHaveTakenEffect && known.forgets > forgets) return removal;
  }
  return CHANGED_BY_OTHERS;
}

function swap(
  name: WriteName,
  expected: string,
  next: string,
  { state, unresolvedOwner }: NameSession,
  backend: RedisKeyRemovalParts['backend'],
): Promise<SwapResult> {
  // Replicas that know the name read it again.
  const more = { keptFor: REMEMBERED_FOR, isNews: true, isForgotten: true };
  return new Promise((resolve) => {
    backend.swap(name, { expected, next, state, owners: ownersOf(state), unresolvedOwner, ...more }, resolve);
  });
}
