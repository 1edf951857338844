/** The state of a name as Redis keeps it: JSON without the name, and with times of Redis' clock. */
import type { NameState, SharedClaim, SharedWrite } from '../../../core/idempotency/name-session.ts';
import type { Millis } from '../../../core/scalars.ts';
import type { WriteName } from '../../keys/key-state-backend.ts';
import { isStoredNameState } from './name-state-form.ts';

/** Names the format, so that no version reads what another has stored. */
export const NAME_STATE_LAYOUT = 'k3';

/** @param ahead how far Redis' clock is ahead of the local one */
export function encodeNameState({ writes, claims }: NameState, ahead: Millis): string {
  return JSON.stringify({
    writes: writes.map(({ name: _name, upstream: _upstream, ...write }) => shiftWrite(write, ahead)),
    claims: claims.map((claim) => {
      const { name: _name, upstream: _upstream, ...identity } = claim.request.identity;
      return { ...shiftClaim(claim, ahead), request: { ...claim.request, identity } };
    }),
  });
}

/** @throws SyntaxError or TypeError if it is not a state of this layout */
export function decodeNameState(text: string, { upstream, name }: WriteName, ahead: Millis): NameState {
  const parsed: unknown = JSON.parse(text);
  if (!isStoredNameState(parsed)) throw new TypeError('the state of a key in Redis has another form');
  const { writes, claims } = parsed;
  // JSON has no undefined.
  return {
    writes: writes.map((write) =>
      shiftWrite({ ...write, endpoint: write.endpoint, body: write.body, name, upstream }, -ahead),
    ),
    claims: claims.map((claim) => {
      const request = { ...claim.request, ttl: claim.request.ttl, endpoint: claim.request.endpoint };
      const identity = { ...request.identity, body: request.identity.body, name, upstream };
      return shiftClaim({ ...claim, request: { ...request, identity } }, -ahead);
    }),
  };
}

function shiftWrite<W extends Pick<SharedWrite, 'firstSentAt'>>(write: W, by: Millis): W {
  return { ...write, firstSentAt: write.firstSentAt + by };
}

function shiftClaim(claim: SharedClaim, by: Millis): SharedClaim {
  const { progress } = claim;
  const { firstSentAt, record } = progress;
  return {
    ...claim,
    progress: {
      ...progress,
      firstSentAt: firstSentAt === undefined ? undefined : firstSentAt + by,
      record: record && { ...record, firstSentAt: record.firstSentAt + by },
    },
  };
}
