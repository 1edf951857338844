import { METHODS } from 'node:http';
import { z } from 'zod';

/**
 * Names of upstreams and classes, used as labels of metrics and as keys of the state. A name never looks like an
 * integer, because JavaScript sorts such keys first.
 */
export const NAME_PATTERN = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

export const NAME_EXPECTED = 'a name starts with a letter, and has at most 64 letters, digits, ".", "_" and "-"';

/** The key of a record. config-rules.ts checks `NAME_PATTERN`, because zod 4.6 drops the value of a key that it rejects. */
export const Name = z.string().meta({ pattern: NAME_PATTERN.source });

/** A shared secret: too long to be guessed. */
export const Secret = z.string().min(16);

/** A field name: a token, RFC 9110 §5.1. */
export const HeaderName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/, 'not a header name');

/** The path of a field in a JSON body: names with dots between. */
export const JsonFieldPath = z
  .string()
  .regex(/^[^.]{1,128}(?:\.[^.]{1,128}){0,7}$/, 'expected the name of a field, or names with dots between: a.b');

/** Methods that Node's HTTP parser accepts, but CONNECT: tunnels are not supported. */
export const Method = z.enum(
  METHODS.filter((method) => method !== 'CONNECT'),
  'not a method that this proxy accepts',
);
