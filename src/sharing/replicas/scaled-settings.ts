import type { RateSettings } from '../../core/rate/rate-state.ts';

/**
 * The settings of a replica's part of a limit. All but the initial rate are read at each use, so that a reload applies.
 * @param share the part of the whole, in (0, 1]
 * @param initialRate the part's own initial rate; undefined if none is known
 */
export function scaleSettings(whole: RateSettings, share: number, initialRate: number | undefined): RateSettings {
  return {
    initialRate,
    get maxRate() {
      return whole.maxRate * share;
    },
    get minRate() {
      return Math.min(whole.minRate, initialRate ?? Number.POSITIVE_INFINITY);
    },
    get cooldown() {
      return whole.cooldown;
    },
    get maxProbeDelay() {
      return whole.maxProbeDelay;
    },
    isPerClient: whole.isPerClient === true,
  };
}
