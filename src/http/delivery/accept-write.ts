import type { AsyncWritePolicy } from '../../core/delivery/async-write-policy.ts';
import type { DeliveryStore } from '../../core/delivery/delivery-store.ts';
import type { Delivery } from '../../core/delivery/delivery.ts';
import type { Millis } from '../../core/scalars.ts';
import { isListedInConnection } from '../headers/forward-headers.ts';
import { prefersAsync, withoutAsyncPreference } from '../headers/prefer-header.ts';
import { writeNameOf } from '../idempotency/idempotency-key.ts';
import { withMintedKey } from '../idempotency/key-header.ts';
import type { IdempotencyKey } from '../idempotency/idempotency-types.ts';
import { repeatIdentityOf } from '../idempotency/repeat-identity.ts';
import type { WriteDigests } from '../idempotency/write-digests.ts';
import { isIdentifiedByName } from '../request/client-identity.ts';
import { replaySafetyOf, type RoutedRequest } from '../request/routed-request.ts';
import type { Acceptance, AcceptanceReply, AcceptedRequest } from './acceptance.ts';
import {
  CALLBACK_REJECTED,
  KEY_MISSING,
  KEY_REUSED_BY_WRITE,
  STATE_UNAVAILABLE,
  WRITE_TOO_LARGE,
} from './delivery-problems.ts';
import { pollAfterSeconds } from './delivery-status.ts';
import { readDeliveryStatus } from './read-delivery-status.ts';
import { storedHeaders } from './stored-headers.ts';
import { callbackPathOf } from './write-callback.ts';

const WRITES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** Whether the request is stored and sent later: its client prefers that (RFC 7240 §4.1), and its route allows it. */
export function isAsyncWrite({ request, route }: Pick<RoutedRequest, 'request' | 'route'>): boolean {
  const { prefer } = request.headers;
  if (route.asyncWrites === undefined || prefer === undefined || !WRITES.has(request.verb)) return false;
  // A path in `safePaths` has no effect to track, and one in `neverPaths` may be sent once only.
  if (replaySafetyOf({ request, route }) !== undefined) return false;
  return !isListedInConnection(request.rawHeaders, 'prefer') && prefersAsync(String(prefer));
}

export interface WriteAcceptanceParts {
  readonly routed: RoutedRequest;
  readonly policy: AsyncWritePolicy;
  readonly digests: WriteDigests;
  readonly store: Pick<DeliveryStore, 'find' | 'message' | 'result' | 'retry'>;
  readonly wallClock: () => Millis;
}

/** Accepts the writes of a route with `async` whose clients prefer a 202. */
export function acceptWrite({ routed, policy, digests, store, wallClock }: WriteAcceptanceParts): Acceptance {
  const { request, route, client } = routed;

  /** By key, account, path and client: never by the key alone. */
  const eventIdOf = (key: IdempotencyKey): string => {
    const name = digests.digest(writeNameOf(routed, key.value));
    // The same whether or not its upstream has accounts: a reload that adds them must not make a repeat a second write. If something else
    // identifies the client, such as a common token, its name has to stay: two clients with one key have two writes.
    const named = isIdentifiedByName(client) ? { ...routed, client: { ...client, keyOwner: undefined } } : routed;
    return `${client.hash}.${repeatIdentityOf(digests, named, name, undefined).id}`;
  };

  /** A repeat by the client makes a write due again that has failed, or whose outcome is unknown. */
  const findAndRetry = async (id: string): Promise<Delivery | undefined> => {
    const known = await store.find(id);
    if (known?.state.kind !== 'dead' && known?.state.kind !== 'unknown') return known;
    const now = wallClock();
    await store.retry(id, now); // false if it is being retried already
    return { ...known, state: { kind: 'waiting', until: now }, attempts: 0 };
  };

  const replyTo = async (accepted: AcceptedRequest): Promise<AcceptanceReply> => {
    const { isDuplicate, delivery, id } = accepted;
    const known = isDuplicate ? await findAndRetry(id) : describeNew(accepted);
    const minted = routed.key?.from === 'minted' && !isDuplicate ? ['Tidegate-Idempotency-Key', routed.key.value] : [];
    const state = known === undefined ? { id } : await readDeliveryStatus(store, known);
    const pollAfter = known && pollAfterSeconds(known, isDuplicate ? wallClock() : delivery.acceptedAt);
    return {
      status: 202,
      headers: [
        ...['Content-Type', 'application/json', 'Cache-Control', 'no-store', 'Preference-Applied', 'respond-async'],
        ...(pollAfter === undefined ? [] : ['Retry-After', String(pollAfter)]),
        ...minted,
      ],
      body: JSON.stringify(state),
    };
  };

  /** Whether the key was used with another query or body; false if the first write is no longer stored. */
  const isDifferent = async ({ id, delivery: { message } }: AcceptedRequest): Promise<boolean> => {
    const first = await store.message(id);
    return (
      first !== undefined && (queryOf(first.target) !== queryOf(message.target) || !first.body.equals(message.body))
    );
  };

  return {
    bodyTooLarge: WRITE_TOO_LARGE,
    describe(body, key) {
      if (key === undefined) return KEY_MISSING;
      const { router } = routed.snapshot;
      if (callbackPathOf({ headers: request.rawHeaders }, policy.callback, router) === false) return CALLBACK_REJECTED;
      const kept = withoutAsyncPreference(storedHeaders(request.rawHeaders, body.length));
      const { header } = route.target.idempotency;
      const headers = key.from === 'minted' && header !== undefined ? withMintedKey(kept, header, key.value) : kept;
      const { deduplicateFor } = policy;
      return { kind: 'write', eventId: eventIdOf(key), orderKey: undefined, deduplicateFor, headers };
    },
    reply(accepted, onReply) {
      const answer = async (): Promise<Parameters<typeof onReply>[0]> =>
        accepted.isDuplicate && (await isDifferent(accepted)) ? KEY_REUSED_BY_WRITE : replyTo(accepted);
      answer().then(onReply, () => onReply(STATE_UNAVAILABLE));
    },
  };
}

function describeNew({ delivery }: AcceptedRequest): Delivery {
  const { message: _, duplicatesUntil: __, ...fields } = delivery;
  const state = { kind: 'waiting', until: delivery.acceptedAt } as const;
  return { ...fields, state, attempts: 0, startedAt: undefined, lastAttempt: undefined };
}

function queryOf(target: string): string {
  return target.includes('?') ? target.slice(target.indexOf('?')) : '';
}
