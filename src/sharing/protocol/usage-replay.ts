import type { BlockStatus } from '../../core/rate/breaker/active-block.ts';
import { BLOCK_CAUSES } from '../../core/rate/breaker/active-block.ts';
import type { FailedSend, RejectedSend } from '../../core/rate/failed-send.ts';
import type { QuotaOwner, Requester } from '../../core/quota/requester.ts';
import type { RequestAttributes } from '../../core/rate/breaker/request-attributes.ts';
import { ANY_REQUEST, ATTRIBUTE_COUNT } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { Quota } from '../../core/hints/hints.ts';
import type { EncodedUsage } from './usage-entries.ts';
import {
  TOKEN_RETURNED,
  SENT,
  ENDED,
  ACCEPTED,
  REJECTED,
  FAILED,
  OVERRUN,
  UNREACHABLE,
  QUOTA,
  STOPPED,
  RATE_REMEMBERED,
  PROBE_ABANDONED,
  TOKEN_UNUSED,
  EPOCH_SEEN,
  QUOTA_SPENT,
  QUOTA_DISOWNED,
  ACCEPTED_FROM_SOURCE,
  PROBED,
  BLOCK_BYPASSED,
  BLOCKED,
  RESPONDED,
  ABANDONED,
  ENTRY_LENGTHS,
  UNKNOWN,
} from './usage-entries.ts';

/** Receives the entries of a log. The methods correspond to those of `Meter`, with serials in place of numbers in flight. */
export interface UsageHandler {
  tokenReturned(): void;
  sent(serial: number, now: Millis): void;
  responded(now: Millis): void;
  ended(now: Millis): void;
  accepted(sentAt: Millis, serial: number, now: Millis, source?: RequestAttributes): void;
  rejected(rejection: RejectedSend, now: Millis): void;
  failed(failure: FailedSend, now: Millis): void;
  abandoned(sentAt: Millis, now: Millis): void;
  probed(now: Millis): void;
  blockBypassed(now: Millis): void;
  resumeBlock(block: BlockStatus, now: Millis): void;
  noteQuota(quota: Quota, sentAt: Millis, now: Millis, requester: Requester): void;
  resumeQuota(owner: QuotaOwner, now: Millis): void;
  disownQuota(isApart: boolean, now: Millis): void;
  stop(until: Millis): void;
  remember(accepted: PerSecond, now: Millis): void;
  abandonProbe(): void;
  tokenUnused(slot: Millis): void;
  epochSeen(epoch: number): void;
}

/** Calls the handler for each entry, in order. @throws RangeError for an unknown kind of entry */
export function replayUsage(numbers: EncodedUsage, handler: UsageHandler): void {
  const at = (index: number): number => numbers[index] ?? UNKNOWN;
  const known = (index: number): number | undefined => (Number.isNaN(at(index)) ? undefined : at(index));
  const source = (index: number): RequestAttributes | undefined => {
    if (Number.isNaN(at(index))) return undefined;
    const read: number[] = [];
    for (let i = 0; i < ATTRIBUTE_COUNT; i += 1) read.push(at(index + i));
    return read;
  };
  for (let i = 0; i < numbers.length; i += ENTRY_LENGTHS[at(i)] ?? 1) {
    switch (numbers[i]) {
      case TOKEN_RETURNED:
        handler.tokenReturned();
        break;
      case SENT:
        handler.sent(at(i + 1), at(i + 2));
        break;
      case RESPONDED:
        handler.responded(at(i + 1));
        break;
      case ENDED:
        handler.ended(at(i + 1));
        break;
      case ACCEPTED:
        handler.accepted(at(i + 1), at(i + 2), at(i + 3));
        break;
      case ACCEPTED_FROM_SOURCE:
        handler.accepted(at(i + 1), at(i + 2), at(i + 3), source(i + 4));
        break;
      case REJECTED: {
        const retryAfter = known(i + 3);
        const overrun = at(i + 5) === 1;
        handler.rejected(
          {
            sentAt: at(i + 1),
            inFlightAtSend: at(i + 2),
            retryAfterMs: retryAfter,
            activeClients: at(i + 4),
            overrun,
            attributes: source(i + 7),
          },
          at(i + 6),
        );
        break;
      }
      case FAILED:
        handler.failed(
          {
            sentAt: at(i + 1),
            retryAfterMs: known(i + 2),
            overrun: at(i + 3) % UNREACHABLE === OVERRUN,
            isUnreachable: at(i + 3) >= UNREACHABLE,
            attributes: source(i + 5),
          },
          at(i + 4),
        );
        break;
      case ABANDONED:
        handler.abandoned(at(i + 1), at(i + 2));
        break;
      case PROBED:
        handler.probed(at(i + 1));
        break;
      case BLOCK_BYPASSED:
        handler.blockBypassed(at(i + 1));
        break;
      case BLOCKED: {
        const cause = BLOCK_CAUSES[at(i + 1)] ?? 'errors';
        const [probeAt, now] = [at(i + 2), at(i + 5)];
        const scope = source(i + 6) ?? ANY_REQUEST;
        const held = { heldClient: at(i + 3), heldClientUntil: at(i + 4) };
        handler.resumeBlock({ cause, scope, since: now, isPartial: false, probeAt, expectedAt: probeAt, ...held }, now);
        break;
      }
      case QUOTA: {
        const quota = { remaining: at(i + 1), limit: known(i + 2), resetIn: known(i + 3), window: known(i + 4) };
        handler.noteQuota(quota, at(i + 7), at(i + 8), {
          credential: known(i + 5),
          client: known(i + 6),
          address: known(i + 9),
        });
        break;
      }
      case QUOTA_SPENT: {
        const kind = at(i + 4);
        const how = { isCommon: kind % 2 === 1, isSpent: kind >= 2 };
        handler.resumeQuota({ until: at(i + 1), credential: known(i + 2), client: known(i + 3), ...how }, at(i + 5));
        break;
      }
      case QUOTA_DISOWNED:
        handler.disownQuota(at(i + 1) === 1, at(i + 2));
        break;
      case STOPPED:
        handler.stop(at(i + 1));
        break;
      case RATE_REMEMBERED:
        handler.remember(at(i + 1), at(i + 2));
        break;
      case PROBE_ABANDONED:
        handler.abandonProbe();
        break;
      case EPOCH_SEEN:
        handler.epochSeen(at(i + 1));
        break;
      case TOKEN_UNUSED:
        handler.tokenUnused(at(i + 1));
        break;
      default:
        throw new RangeError(`unknown kind of usage entry: ${numbers[i]}`);
    }
  }
}
