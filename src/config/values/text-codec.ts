import { z } from 'zod';
import type { ParseResult } from './parse-result.ts';

// zod 4.6.7 compiles a validator for each object schema (schemas.ts, $ZodObjectJIT), which takes twice as long as validating
// one configuration without it: 9 ms of the start. Disabled here, because every object schema imports this file.
z.config({ jitless: true });

export type { ParseResult } from './parse-result.ts';
export { parseFailure } from './parse-result.ts';

export interface TextCodec<T> {
  /** Completes "expected …", with examples. */
  readonly expected: string;
  /** The accepted forms as JSON Schema, for editors. They may accept more than `parse` does, never less. */
  readonly forms: readonly Readonly<Record<string, unknown>>[];
  readonly parse: (input: string | number) => ParseResult<T>;
  /** The inverse of `parse`: parsing the formatted value returns the value. */
  readonly format: (value: T) => string | number;
  /** Whether `parse` may return this value: needed if the value also has another written form. */
  readonly isValue?: (value: unknown) => boolean;
}

/** A codec between a value and its written form: text, or a bare number in YAML. */
export function textCodec<T>({ expected, forms, parse, format, isValue }: TextCodec<T>) {
  return z.codec(
    z.union([z.string(), z.number()], { error: `expected ${expected}` }).meta({ anyOf: [...forms] }),
    z.custom<T>(isValue),
    {
      decode: (input, context) => {
        const reading = parse(input);
        if (reading.ok) return reading.value;
        const { message, suggestion } = reading;
        context.issues.push({ code: 'custom', input, message, params: { suggestion } });
        return z.NEVER;
      },
      encode: format,
    },
  );
}
