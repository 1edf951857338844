import type { RateSettings } from '../../core/rate/rate-state.ts';

/**
 * Settings of one that has a part of a limit to itself. The others are read anew each time, as a reload changes them.
 * @param initialRate its part of what is known; undefined where nothing is
 */
export function partOfSettings(whole: RateSettings, part: number, initialRate: number | undefined): RateSettings {
  return {
    initialRate,
    get maxRate() {
      return whole.maxRate * part;
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
    isOfOne: whole.isOfOne === true,
  };
}
