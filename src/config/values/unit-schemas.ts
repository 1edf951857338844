/** Durations, rates and sizes in the schemas of what is configured. */
import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import {
  A_DURATION,
  BYTE_RATE,
  DURATION,
  RATE,
  SIZE,
  readByteRate,
  readDuration,
  readRate,
  readSize,
  writeByteRate,
  writeDuration,
  writeRate,
  writeSize,
} from './quantities.ts';
import { misread } from './parse-result.ts';
import type { Notation } from './text-codec.ts';
import { written } from './text-codec.ts';

export {
  readByteRate,
  readDuration,
  readRate,
  readSize,
  writeByteRate,
  writeDuration,
  writeRate,
  writeSize,
} from './quantities.ts';

const durations: Notation<Millis> = {
  expected: A_DURATION,
  forms: [{ type: 'string', pattern: DURATION.source }, { const: 0 }],
  read: readDuration,
  write: writeDuration,
  holds: (value: unknown) => typeof value === 'number',
};

/** A duration, 0 or more, at most 24 days. */
export const Duration = written(durations);

/** A duration above 0, at most 24 days. */
export const PositiveDuration = written<Millis>({
  ...durations,
  forms: [{ type: 'string', pattern: DURATION.source }],
  read(input) {
    const reading = readDuration(input);
    return reading.ok && reading.value === 0 ? misread('must be longer than 0') : reading;
  },
});

/** Requests a second, above 0. */
export const Rate = written<PerSecond>({
  expected: 'a rate such as 100/s, 20/m or 5000/h',
  forms: [{ type: 'string', pattern: RATE.source }],
  read: readRate,
  write: writeRate,
});

/** Bytes, 0 or more. */
export const Size = written<number>({
  expected: 'a size such as 64KiB or 8MiB',
  forms: [{ type: 'string', pattern: SIZE.source }, { const: 0 }],
  read: readSize,
  write: writeSize,
});

/** Bytes a second, 0 or more. */
export const ByteRate = written<number>({
  expected: 'a rate such as 500B/s or 1MiB/s',
  forms: [{ type: 'string', pattern: BYTE_RATE.source }, { const: 0 }],
  read: readByteRate,
  write: writeByteRate,
});
