import type { Block } from '../../core/rate/breaker/active-block.ts';
import { BLOCK_CAUSES } from '../../core/rate/breaker/active-block.ts';
import type { Failure, Rejection } from '../../core/rate/failed-send.ts';
import type { QuotaOwner, Requester } from '../../core/quota/requester.ts';
import type { Source } from '../../core/rate/breaker/request-attributes.ts';
import { ANYWHERE, SOURCE_NUMBERS } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis, PerSecond, Quota } from '../../core/exchange/attempt-outcome.ts';
import type { Happenings } from './usage-entries.ts';
import {
  GIVEN_BACK,
  SENT,
  ENDED,
  ACCEPTED,
  REJECTED,
  FAILED,
  QUOTA,
  STOP,
  REMEMBER,
  ABANDON,
  UNSPENT,
  EPOCH,
  QUOTA_SPENT,
  QUOTA_DISOWNED,
  ACCEPTED_OF,
  PROBED,
  PASSED_BY,
  BLOCKED,
  LENGTHS,
  UNKNOWN,
} from './usage-entries.ts';

/** Who is told again what a log tells: the methods mean what those of a `Meter` do, with serials instead of numbers in flight. */
export interface Replayed {
  givenBack(): void;
  sent(serial: number, now: Millis): void;
  ended(now: Millis): void;
  accepted(sentAt: Millis, serial: number, now: Millis, source?: Source): void;
  rejected(rejection: Rejection, now: Millis): void;
  failed(failure: Failure, now: Millis): void;
  probed(now: Millis): void;
  passedBy(now: Millis): void;
  resumeBlock(block: Block, now: Millis): void;
  noteQuota(quota: Quota, sentAt: Millis, now: Millis, requester: Requester): void;
  resumeQuota(owner: QuotaOwner, now: Millis): void;
  disownQuota(isApart: boolean, now: Millis): void;
  stop(until: Millis): void;
  remember(accepted: PerSecond, now: Millis): void;
  abandonProbe(): void;
  unspent(slot: Millis): void;
  epoch(epoch: number): void;
}

/** @throws RangeError for what no `HappeningLog` has written */
export function replay(numbers: Happenings, to: Replayed): void {
  const at = (index: number): number => numbers[index] ?? UNKNOWN;
  const known = (index: number): number | undefined => (Number.isNaN(at(index)) ? undefined : at(index));
  const source = (index: number): Source | undefined => {
    if (Number.isNaN(at(index))) return undefined;
    const read: number[] = [];
    for (let i = 0; i < SOURCE_NUMBERS; i += 1) read.push(at(index + i));
    return read;
  };
  for (let i = 0; i < numbers.length; i += LENGTHS[at(i)] ?? 1) {
    switch (numbers[i]) {
      case GIVEN_BACK:
        to.givenBack();
        break;
      case SENT:
        to.sent(at(i + 1), at(i + 2));
        break;
      case ENDED:
        to.ended(at(i + 1));
        break;
      case ACCEPTED:
        to.accepted(at(i + 1), at(i + 2), at(i + 3));
        break;
      case ACCEPTED_OF:
        to.accepted(at(i + 1), at(i + 2), at(i + 3), source(i + 4));
        break;
      case REJECTED: {
        const retryAfter = known(i + 3);
        const overrun = at(i + 5) === 1;
        to.rejected(
          {
            sentAt: at(i + 1),
            among: at(i + 2),
            retryAfter,
            activeClients: at(i + 4),
            overrun,
            source: source(i + 7),
          },
          at(i + 6),
        );
        break;
      }
      case FAILED:
        to.failed(
          { sentAt: at(i + 1), retryAfter: known(i + 2), overrun: at(i + 3) === 1, source: source(i + 5) },
          at(i + 4),
        );
        break;
      case PROBED:
        to.probed(at(i + 1));
        break;
      case PASSED_BY:
        to.passedBy(at(i + 1));
        break;
      case BLOCKED: {
        const cause = BLOCK_CAUSES[at(i + 1)] ?? 'errors';
        const [probeAt, now] = [at(i + 2), at(i + 5)];
        const scope = source(i + 6) ?? ANYWHERE;
        const asked = { asked: at(i + 3), askedUntil: at(i + 4) };
        to.resumeBlock({ cause, scope, since: now, isPartial: false, probeAt, expectedAt: probeAt, ...asked }, now);
        break;
      }
      case QUOTA: {
        const quota = { remaining: at(i + 1), limit: known(i + 2), resetIn: known(i + 3), window: known(i + 4) };
        to.noteQuota(quota, at(i + 7), at(i + 8), {
          credential: known(i + 5),
          client: known(i + 6),
          address: known(i + 9),
        });
        break;
      }
      case QUOTA_SPENT: {
        const kind = at(i + 4);
        const how = { isCommon: kind % 2 === 1, isSpent: kind >= 2 };
        to.resumeQuota({ until: at(i + 1), credential: known(i + 2), client: known(i + 3), ...how }, at(i + 5));
        break;
      }
      case QUOTA_DISOWNED:
        to.disownQuota(at(i + 1) === 1, at(i + 2));
        break;
      case STOP:
        to.stop(at(i + 1));
        break;
      case REMEMBER:
        to.remember(at(i + 1), at(i + 2));
        break;
      case ABANDON:
        to.abandonProbe();
        break;
      case EPOCH:
        to.epoch(at(i + 1));
        break;
      case UNSPENT:
        to.unspent(at(i + 1));
        break;
      default:
        throw new RangeError(`nothing happens by the number ${numbers[i]}`);
    }
  }
}
