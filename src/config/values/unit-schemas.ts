/** Schemas of durations, rates and sizes. */
import type { Millis, PerSecond } from '../../core/scalars.ts';
import {
  DURATION_EXPECTED,
  BYTE_RATE_PATTERN,
  DURATION_PATTERN,
  RATE_PATTERN,
  SIZE_PATTERN,
  parseByteRate,
  parseDuration,
  parseRate,
  parseSize,
  formatByteRate,
  formatDuration,
  formatRate,
  formatSize,
} from './quantities.ts';
import { parseFailure } from './parse-result.ts';
import type { TextCodec } from './text-codec.ts';
import { textCodec } from './text-codec.ts';

export {
  parseByteRate,
  parseDuration,
  parseRate,
  parseSize,
  formatByteRate,
  formatDuration,
  formatRate,
  formatSize,
} from './quantities.ts';

const durationCodec: TextCodec<Millis> = {
  expected: DURATION_EXPECTED,
  forms: [{ type: 'string', pattern: DURATION_PATTERN.source }, { const: 0 }],
  parse: parseDuration,
  format: formatDuration,
  isValue: (value: unknown) => typeof value === 'number',
};

/** A duration, 0 or more, at most 24 days. */
export const Duration = textCodec(durationCodec);

/** A duration above 0, at most 24 days. */
export const PositiveDuration = textCodec<Millis>({
  ...durationCodec,
  forms: [{ type: 'string', pattern: DURATION_PATTERN.source }],
  parse(input) {
    const reading = parseDuration(input);
    return reading.ok && reading.value === 0 ? parseFailure('must be longer than 0') : reading;
  },
});

/** Requests per second, above 0. */
export const Rate = textCodec<PerSecond>({
  expected: 'a rate such as 100/s, 20/m or 5000/h',
  forms: [{ type: 'string', pattern: RATE_PATTERN.source }],
  parse: parseRate,
  format: formatRate,
});

/** Bytes, 0 or more. */
export const Size = textCodec<number>({
  expected: 'a size such as 64KiB or 8MiB',
  forms: [{ type: 'string', pattern: SIZE_PATTERN.source }, { const: 0 }],
  parse: parseSize,
  format: formatSize,
});

/** Bytes per second, 0 or more. */
export const ByteRate = textCodec<number>({
  expected: 'a rate such as 500B/s or 1MiB/s',
  forms: [{ type: 'string', pattern: BYTE_RATE_PATTERN.source }, { const: 0 }],
  parse: parseByteRate,
  format: formatByteRate,
});
