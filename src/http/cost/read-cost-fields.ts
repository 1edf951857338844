import type { Quota } from '../../core/hints/hints.ts';
import type { BucketFields, CostFieldPath } from './route-costs.ts';

const NUMBER = /^[ \t]*\d{1,15}(?:\.\d{1,9})?[ \t]*$/;

/** The number in a header; undefined if it is absent, repeated, or not one plain number. */
export function parseCost(value: string | undefined): number | undefined {
  return value !== undefined && NUMBER.test(value) ? Number(value) : undefined;
}

/** Finds the number at a path; undefined if there is none. */
export type FieldLookup = (path: CostFieldPath) => number | undefined;

/** Looks fields up in a JSON document of an upstream, which is parsed once. One that is no JSON has none. */
export function lookupInJson(body: Uint8Array): FieldLookup {
  const document = parseJson(body);
  return (path) => {
    let value: unknown = document;
    for (const name of path) {
      if (typeof value !== 'object' || value === null) return undefined;
      value = Object.getOwnPropertyDescriptor(value, name)?.value;
    }
    return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
  };
}

function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString());
  } catch {
    return undefined;
  }
}

/** The sum of the fields that are present; undefined if none is. */
export function sumFields(fields: readonly CostFieldPath[], lookup: FieldLookup): number | undefined {
  const found = fields.flatMap((path) => lookup(path) ?? []);
  return found.length === 0 ? undefined : found.reduce((sum, value) => sum + value, 0);
}

/** A bucket that takes longer to refill is no rate limit, and would stop everything for that long. */
const LONGEST_REFILL_SECONDS = 86_400;
/** A larger number of units is a mistake, and times in milliseconds would no longer be exact. */
const LARGEST_BUCKET = 1e12;

/**
 * The level of a bucket as a quota; undefined if a field is absent or no valid number, or if the bucket takes over a day to refill. A bucket refills all the time, so it is never
 * reported as spent until it is full.
 */
export function readBucket({ available, limit, refillRate }: BucketFields, lookup: FieldLookup): Quota | undefined {
  const [left = -1, size = 0, rate = 0] = [lookup(available), lookup(limit), lookup(refillRate)];
  if (left < 0 || size <= 0 || rate <= 0) return undefined;
  if (size > LARGEST_BUCKET || size > rate * LONGEST_REFILL_SECONDS) return undefined;
  const remaining = Math.max(1, Math.min(left, size));
  return { remaining, limit: size, resetIn: (1000 * (size - remaining)) / rate, window: (1000 * size) / rate };
}
