import { METHODS } from 'node:http';
import { z } from 'zod';

/** Upstreams and classes go by these: labels of metrics, keys of the state. Never like an integer, which JavaScript would put first. */
export const NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

/** The key of a record. `NAME` is checked elsewhere, since zod 4.6 leaves out the value of a key that it refuses. */
export const Name = z.string().meta({ pattern: NAME.source });

/** A field name: a token, RFC 9110 §5.1. */
export const HeaderName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/, 'not a header name');

/** Methods that the HTTP parser lets in; CONNECT asks for a tunnel, which is another trade. */
export const Method = z.enum(
  METHODS.filter((method) => method !== 'CONNECT'),
  'not a method that is served here',
);
