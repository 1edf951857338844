import type { EpochMillis } from '../../../core/quota/calendar/quota-period.ts';
import type { Millis } from '../../../core/scalars.ts';
import type { QuotaDelays, QuotaTerms } from '../../quotas/quota-protocol.ts';

/** What the script of quotas replies. */
export interface QuotaReply {
  readonly time: EpochMillis;
  readonly terms: Omit<QuotaTerms, 'view'>;
  /** Requests of the present period, those leased included. */
  readonly used: number;
  /** Parts ever granted. It never falls, unless Redis has lost its state. */
  readonly everGranted: number;
  /** Until the end of the window, or until the oldest requests of a rolling period cease to count. */
  readonly untilNext: Millis;
  /** When an operator last reset the count; 0 if none did. */
  readonly resetAt: EpochMillis;
}

/** An operator's call about a quota that Redis does not know. */
export interface UnknownQuota {
  readonly isUnknown: true;
}

/** The time of Redis is not in the window that the call names. */
export interface WrongWindow {
  readonly wrongWindowAt: EpochMillis;
}

/** @throws TypeError if this is no reply of the script */
export function parseQuotaReply(reply: unknown): QuotaReply | WrongWindow | UnknownQuota {
  if (!Array.isArray(reply)) throw new TypeError('the script of quotas has returned no list');
  const [kind, ...rest] = reply.map(String);
  const numbers = rest.map(Number);
  if (kind === 'none') return { isUnknown: true };
  const areNumbers = numbers.every((each) => Number.isFinite(each));
  if (!areNumbers) throw new TypeError('the script of quotas has returned no numbers');
  const at = (i: number): number => numbers[i] ?? 0;
  if (kind === 'window') return { wrongWindowAt: at(0) };
  const delays = (i: number): QuotaDelays => {
    const rate = at(i + 2);
    return { untilReset: at(i), delay: at(i + 1), rate: rate > 0 ? rate : Number.POSITIVE_INFINITY };
  };
  return {
    time: at(0),
    terms: {
      granted: at(1),
      grantedReserve: at(2),
      since: at(3),
      validFor: at(4),
      ordinary: delays(5),
      priority: delays(8),
      sharers: at(11),
      heldByOthers: at(12),
      ...(at(16) === 1 ? { isSettling: true } : {}),
    },
    used: at(13),
    everGranted: at(14),
    untilNext: at(15),
    resetAt: at(17),
  };
}
