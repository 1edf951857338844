import type { Block } from '../rate/breaker/active-block.ts';
import type { LocalMeter, Meter } from './meter.ts';
import type { QuotaOwner } from '../quota/requester.ts';
import type { Millis } from '../exchange/attempt-outcome.ts';

/** What another meter held back, and until when. */
export interface Stopped {
  readonly blockedUntil: Millis | undefined;
  readonly quotaOwner?: QuotaOwner | undefined;
  readonly block?: Block | undefined;
}

/** What this meter holds back. */
export function stoppedOf(meter: LocalMeter, now: Millis): Stopped {
  return { blockedUntil: meter.blockedUntil, quotaOwner: meter.quotaOwner(now), block: meter.block(now) };
}

/** Until when another meter let nothing pass is kept to by this one, for the same reason. */
export function keepStop(
  meter: Pick<Meter, 'stop' | 'resumeQuota' | 'resumeBlock'>,
  { blockedUntil, quotaOwner, block }: Stopped,
  now: Millis,
): void {
  if (block !== undefined) meter.resumeBlock?.(block, now);
  if (quotaOwner !== undefined && quotaOwner.until > now) meter.resumeQuota(quotaOwner, now);
  if (blockedUntil === undefined || blockedUntil <= now || blockedUntil === quotaOwner?.until) return;
  if (block?.isPartial === false && blockedUntil <= block.probeAt) return;
  meter.stop(blockedUntil);
}
