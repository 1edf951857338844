import { z } from 'zod';
import { MIN_DELIVERY_DELAY } from '../../../core/delivery/delivery-schedule.ts';
import type { SchedulePreset } from '../../../core/delivery/schedule-presets.ts';
import { schedulePresetNames } from '../../../core/delivery/schedule-presets.ts';
import { suggest } from '../../values/suggest.ts';
import { parseFailure, textCodec } from '../../values/text-codec.ts';
import { Ttl } from '../../values/ttl.ts';
import { PositiveDuration } from '../../values/unit-schemas.ts';
import { BackOffOverrideSchema } from '../backoff-schema.ts';

/** What a schedule leaves out. */
export interface ScheduleDefaults {
  readonly backOff: {
    readonly strategy: 'exponential-jitter';
    readonly baseInterval: number;
    readonly maxInterval: number;
  };
  /** From the first attempt to the last one. */
  readonly total: number;
}

/** Of a delivering route: some twenty attempts in three days. */
export const DELIVERY_SCHEDULE: ScheduleDefaults = {
  backOff: { strategy: 'exponential-jitter', baseInterval: 10_000, maxInterval: 21_600_000 },
  total: 259_200_000,
};

const PRESETS = schedulePresetNames.join(', ');

const Preset = textCodec<SchedulePreset>({
  expected: `one of ${PRESETS}`,
  forms: [{ enum: [...schedulePresetNames] }],
  parse(input) {
    const preset = schedulePresetNames.find((name) => name === input);
    if (preset !== undefined) return { ok: true, value: preset };
    return parseFailure(`expected one of ${PRESETS}, or a mapping`, suggest(String(input), schedulePresetNames));
  },
  format: (name) => name,
  isValue: (value) => schedulePresetNames.some((name) => name === value),
});

const Delay = PositiveDuration.refine((delay) => delay >= MIN_DELIVERY_DELAY, 'must be at least 1s');

/** A backoff with a total, or a list of delays; options left out are those of the default. */
export function makeScheduleOptions(defaultTotal: string) {
  return z.strictObject({
    ...BackOffOverrideSchema.shape,
    total: Ttl.optional().describe(
      `Time from the first attempt after which no other begins; ${defaultTotal} if absent.`,
    ),
    delays: z
      .array(Delay)
      .min(1)
      .max(1000)
      .optional()
      .describe('The delays before all attempts but the first, in place of a strategy and a total: [5m, 1h, 12h].'),
  });
}

export const DeliveryScheduleSchema = z
  .union(
    [Preset, makeScheduleOptions('72h')],
    `expected one of ${PRESETS}, or a mapping with strategy and total, or with delays`,
  )
  .prefault({ strategy: 'exponential-jitter', baseInterval: '10s', maxInterval: '6h', total: '72h' })
  .describe(
    'When an attempt that is not acknowledged is repeated: a backoff with a total, {delays: […]}, or the schedule of a provider by name.',
  );
