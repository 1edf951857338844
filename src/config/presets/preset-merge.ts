import { BackOffSchema } from '../schema/backoff-schema.ts';
import { isMapping, valueAt } from '../values/plain-object.ts';
import type { Path } from '../load/mistakes.ts';
import { parseRate } from '../values/unit-schemas.ts';

/**
 * Merges a preset beneath the written settings of an upstream. Written settings take precedence, key by key; a list is one
 * value. Settings of the preset that conflict with written ones are left out:
 * - its `url`, if `url` or `urls` is written;
 * - its `initialRate`, if that is outside the written `minRate` or `maxRate`;
 * - its idempotency `header`, if a `jsonField` is written: the key is there;
 * - a backoff with another strategy than the written one, whose options would mean other things (retry-overrides.ts).
 * @param written valid or not; changed in place
 * @param preset changed in place
 * @returns the paths of the added settings
 */
export function mergePreset(written: object, preset: object): Path[] {
  for (const path of [...findConflicts(written, preset)]) {
    const parent = valueAt(preset, path.slice(0, -1));
    if (isMapping(parent)) Reflect.deleteProperty(parent, path.at(-1) ?? '');
  }
  return mergeMissing(written, preset, []);
}

function mergeMissing(written: object, preset: object, path: Path): Path[] {
  return Object.entries(preset).flatMap(([key, value]) => {
    const here = [...path, key];
    if (!Object.hasOwn(written, key)) {
      Reflect.set(written, key, value);
      return [here];
    }
    const writtenValue = valueAt(written, [key]);
    return isMapping(writtenValue) && isMapping(value) ? mergeMissing(writtenValue, value, here) : [];
  });
}

function* findConflicts(written: object, preset: object): Generator<Path> {
  if (Object.hasOwn(written, 'url') || Object.hasOwn(written, 'urls')) yield* [['url'], ['urls']];

  const rate = rateAt(preset, 'initialRate') ?? 0;
  if (rate < (rateAt(written, 'minRate') ?? 0) || rate > (rateAt(written, 'maxRate') ?? Infinity)) {
    yield ['rateLimit', 'initialRate'];
  }

  if (valueAt(written, ['idempotency', 'jsonField']) !== undefined) yield ['idempotency', 'header'];

  const presetStrategy = strategyAt(preset, BACK_OFF) ?? DEFAULT_STRATEGY;
  const writtenStrategy = strategyAt(written, BACK_OFF) ?? presetStrategy;
  if (writtenStrategy !== presetStrategy) yield BACK_OFF;
  for (const reason of Object.keys(valueAt(preset, BACK_OFF_FOR) ?? {})) {
    const path = [...BACK_OFF_FOR, reason];
    const ownStrategy = strategyAt(preset, path);
    // Without a strategy of its own, it has that of backOff.
    if ((strategyAt(written, path) ?? ownStrategy ?? writtenStrategy) !== (ownStrategy ?? presetStrategy)) yield path;
  }
}

const BACK_OFF = ['retry', 'backOff'];
const BACK_OFF_FOR = ['retry', 'backOffFor'];
const { strategy: DEFAULT_STRATEGY } = BackOffSchema.parse({});

function strategyAt(settings: object, path: Path): unknown {
  return valueAt(settings, [...path, 'strategy']);
}

/** Undefined if there is no valid rate. */
function rateAt(settings: object, key: string): number | undefined {
  const text = valueAt(settings, ['rateLimit', key]);
  const reading = typeof text === 'string' ? parseRate(text) : undefined;
  return reading?.ok ? reading.value : undefined;
}
