import { z } from 'zod';
import type { Reading } from './parse-result.ts';

// zod 4.6.7 compiles a validator for each kind of object (schemas.ts, $ZodObjectJIT), which takes twice as long as validating
// the one configuration there is: 9 ms of a start. It is told here because every schema of an object comes after this file.
z.config({ jitless: true });

export type { Reading } from './parse-result.ts';
export { misread } from './parse-result.ts';

export interface Notation<T> {
  /** Completes "expected …": what it is, with examples. */
  readonly expected: string;
  /** The accepted forms as JSON Schema, for editors. They may accept a little more than `read` does, never less. */
  readonly forms: readonly Readonly<Record<string, unknown>>[];
  readonly read: (input: string | number) => Reading<T>;
  /** The inverse of `read`: for every value that `read` returns, reading what is written gives it again. */
  readonly write: (value: T) => string | number;
  /** Whether a value is one that `read` returns: needed where it may also be written in another form. */
  readonly holds?: (value: unknown) => boolean;
}

/** A value that is written as text (or, in YAML, as a bare number) and means something else: a codec between the two. */
export function written<T>({ expected, forms, read, write, holds }: Notation<T>) {
  return z.codec(
    z.union([z.string(), z.number()], { error: `expected ${expected}` }).meta({ anyOf: [...forms] }),
    z.custom<T>(holds),
    {
      decode: (input, context) => {
        const reading = read(input);
        if (reading.ok) return reading.value;
        const { message, suggestion } = reading;
        context.issues.push({ code: 'custom', input, message, params: { suggestion } });
        return z.NEVER;
      },
      encode: write,
    },
  );
}
