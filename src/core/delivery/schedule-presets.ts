import type { Millis } from '../scalars.ts';

const S: Millis = 1000;
const M: Millis = 60 * S;
const H: Millis = 60 * M;

/**
 * Schedules by which providers send their own notifications: delays between attempts. The first attempt is not in the list.
 */
export const SCHEDULE_PRESETS = {
  /**
   * Stripe publishes that it retries for up to three days with exponential backoff, and no intervals
   * (https://docs.stripe.com/webhooks#retries). These are the times that users report: 5 and 30 minutes, 2, 4, 8 and 16 hours after the
   * first attempt, then daily (https://sentryforge.royalruby.io/webhook/blog/retry-behavior/); and one as the three days end.
   */
  stripe: [5 * M, 25 * M, 90 * M, 2 * H, 4 * H, 8 * H, 24 * H, 24 * H, 8 * H],
  /** https://opendocs.alipay.com/open/270/105902: eight notifications within 25 hours. */
  alipay: [4 * M, 10 * M, 10 * M, H, 2 * H, 6 * H, 15 * H],
  /** https://pay.weixin.qq.com/wiki/doc/apiv3/apis/chapter3_2_5.shtml: 24 hours and 4 minutes in total. */
  'wechat-pay': [
    15 * S,
    15 * S,
    30 * S,
    3 * M,
    10 * M,
    20 * M,
    30 * M,
    30 * M,
    30 * M,
    60 * M,
    3 * H,
    3 * H,
    3 * H,
    6 * H,
    6 * H,
  ],
  /** https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md, "Example retry schedule". */
  'standard-webhooks': [5 * S, 5 * M, 30 * M, 2 * H, 5 * H, 10 * H, 14 * H, 20 * H, 24 * H],
} as const satisfies Readonly<Record<string, readonly Millis[]>>;

export type SchedulePreset = keyof typeof SCHEDULE_PRESETS;

/** In the order of a listing. */
export const schedulePresetNames: readonly SchedulePreset[] = Object.keys(SCHEDULE_PRESETS).filter(isSchedulePreset);

function isSchedulePreset(name: string): name is SchedulePreset {
  return Object.hasOwn(SCHEDULE_PRESETS, name);
}
