import type { Millis } from '../scalars.ts';
import type { QuotaOwner } from '../quota/requester.ts';
import type { BlockStatus } from '../rate/breaker/active-block.ts';
import type { Learner, MeterView } from './meter.ts';

/** What another meter held back, and until when. */
export interface MeterStop {
  readonly blockedUntil: Millis | undefined;
  readonly quotaOwner?: QuotaOwner | undefined;
  readonly block?: BlockStatus | undefined;
}

/** Returns what this meter holds back now. */
export function readStop(meter: Pick<MeterView, 'blockedUntil' | 'quotaOwner' | 'block'>, now: Millis): MeterStop {
  return { blockedUntil: meter.blockedUntil, quotaOwner: meter.quotaOwner(now), block: meter.block?.(now) };
}

/** Makes a meter hold back what another meter held back, for the same reason and until the same time. */
export function restoreStop(
  meter: Pick<Learner, 'stop' | 'resumeQuota' | 'resumeBlock'>,
  { blockedUntil, quotaOwner, block }: MeterStop,
  now: Millis,
): void {
  if (block !== undefined) meter.resumeBlock?.(block, now);
  if (quotaOwner !== undefined && quotaOwner.until > now) meter.resumeQuota(quotaOwner, now);
  if (blockedUntil === undefined || blockedUntil <= now || blockedUntil === quotaOwner?.until) return;
  if (block?.isPartial === false && blockedUntil <= block.probeAt) return;
  meter.stop(blockedUntil);
}
