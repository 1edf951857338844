import { BackOff } from '../schema/backoff-schema.ts';
import { isMapping, valueAt } from '../load/schema-issues.ts';
import type { Path } from '../load/mistakes.ts';
import { readRate } from '../values/unit-schemas.ts';

/**
 * Adds what a preset says to what is written of an upstream. What is written wins, key by key; a list is one value. Left
 * out of the preset is what cannot stand beside what is written:
 * - its `url`, where `url` or `urls` is written;
 * - its `initialRate`, where that is beyond the `minRate` or `maxRate` written;
 * - its `header` of the idempotency key, where only a `jsonField` is written: that is where the key stands;
 * - a backoff of another strategy than the one written, to which its options would mean something else (retry-overrides.ts).
 * @param written sound or not; changed in place
 * @param preset changed in place
 * @returns the paths of what was added
 */
export function layBeneath(written: object, preset: object): Path[] {
  for (const path of [...findMisfits(written, preset)]) {
    const holder = valueAt(preset, path.slice(0, -1));
    if (isMapping(holder)) Reflect.deleteProperty(holder, path.at(-1) ?? '');
  }
  return add(written, preset, []);
}

function add(written: object, preset: object, path: Path): Path[] {
  return Object.entries(preset).flatMap(([key, value]) => {
    const here = [...path, key];
    if (!Object.hasOwn(written, key)) {
      Reflect.set(written, key, value);
      return [here];
    }
    const own = valueAt(written, [key]);
    return isMapping(own) && isMapping(value) ? add(own, value, here) : [];
  });
}

function* findMisfits(written: object, preset: object): Generator<Path> {
  if (Object.hasOwn(written, 'url') || Object.hasOwn(written, 'urls')) yield* [['url'], ['urls']];

  const rate = rateAt(preset, 'initialRate') ?? 0;
  if (rate < (rateAt(written, 'minRate') ?? 0) || rate > (rateAt(written, 'maxRate') ?? Infinity)) {
    yield ['rateLimit', 'initialRate'];
  }

  if (valueAt(written, ['idempotency', 'jsonField']) !== undefined) yield ['idempotency', 'header'];

  const base = strategyAt(preset, BACK_OFF) ?? USUAL;
  const other = strategyAt(written, BACK_OFF) ?? base;
  if (other !== base) yield BACK_OFF;
  for (const reason of Object.keys(valueAt(preset, BACK_OFF_FOR) ?? {})) {
    const path = [...BACK_OFF_FOR, reason];
    const own = strategyAt(preset, path);
    // One that names no strategy has that of the backoff.
    if ((strategyAt(written, path) ?? own ?? other) !== (own ?? base)) yield path;
  }
}

const BACK_OFF = ['retry', 'backOff'];
const BACK_OFF_FOR = ['retry', 'backOffFor'];
const { strategy: USUAL } = BackOff.parse({});

function strategyAt(settings: object, path: Path): unknown {
  return valueAt(settings, [...path, 'strategy']);
}

/** Undefined where there is none that can be read. */
function rateAt(settings: object, key: string): number | undefined {
  const text = valueAt(settings, ['rateLimit', key]);
  const reading = typeof text === 'string' ? readRate(text) : undefined;
  return reading?.ok ? reading.value : undefined;
}
