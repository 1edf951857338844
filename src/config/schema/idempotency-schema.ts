import { z } from 'zod';
import { REPLAYED_HEADER } from '../../core/idempotency/response-store.ts';
import { Ttl } from '../values/ttl.ts';
import { AccountSource, DEFAULT_ACCOUNT_SOURCES } from '../values/account-source.ts';
import { HeaderName, JsonFieldPath, Method } from './name-schemas.ts';
import { PathPatternSchema } from '../values/path-pattern-schema.ts';

const ACCOUNT = 'header:NAME, jwt:CLAIM or jwt:HEADER:CLAIM';

const PathTtl = z.strictObject({
  path: PathPatternSchema.describe('Paths as the upstream sees them: * is one segment, ** at the end the rest.'),
  method: Method.optional().describe('Only requests with this method.'),
  ttl: Ttl.describe('How long the upstream remembers their keys.'),
});

const IdempotencyInputSchema = z.strictObject({
  header: z
    .union([z.literal(false), HeaderName], 'expected the name of a header, or false')
    .optional()
    .describe(
      'The request header with the idempotency key; false for none. If absent: Idempotency-Key, or false where jsonField is set.',
    ),
  jsonField: JsonFieldPath.optional().describe(
    'The field with the key in a JSON body: idempotency_key, or a.b within an object. It is only read.',
  ),
  account: z
    .union(
      [z.literal('none'), z.array(AccountSource).min(1), AccountSource],
      `expected none, ${ACCOUNT}, or a list of these`,
    )
    .prefault(DEFAULT_ACCOUNT_SOURCES)
    .describe(
      'What names the account that a key belongs to: header:NAME, jwt:CLAIM of the bearer token, jwt:HEADER:CLAIM, a list of these, or none. Equal keys of different accounts are different writes.',
    ),
  keyScope: z
    .enum(['client', 'shared'])
    .optional()
    .describe(
      'With accounts: which key the upstream gets. client (a UUID derived from the client and its key) or shared (the key as it is). If absent: client where clients.auth or clients.key names clients.',
    ),
  replayedHeader: z
    .union([z.literal(false), HeaderName], 'expected the name of a header, or false')
    .prefault(REPLAYED_HEADER)
    .describe('The response header that is true where the upstream replays a stored response; false for none.'),
  sharesKeys: z
    .boolean()
    .prefault(false)
    .describe('Whether all urls know the same keys, so that a write may be retried at another one.'),
  generate: z
    .boolean()
    .prefault(false)
    .describe('Add a generated key to a POST or PATCH without one, in header, so that it can be retried.'),
  ttl: z
    .union([z.array(PathTtl).min(1), Ttl], 'expected a time such as 24h, or a list of {path, ttl}')
    .optional()
    .describe(
      'How long the upstream remembers keys; or a list of {path, method, ttl}, of which the first match applies. After that a repeat is a new write.',
    ),
  concurrent: z
    .enum(['wait', 'refuse', 'pass'])
    .prefault('wait')
    .describe(
      'What happens to a request whose key is in use by another: it waits, is rejected with 409, or passes. With several urls that do not share keys, pass is as wait.',
    ),
  onStoreLost: z
    .enum(['refuse', 'local'])
    .prefault('refuse')
    .describe(
      'What happens to a write with a key while what is known of keys cannot be read or stored (state.store redis or sqlite): it is rejected with 503, or sent by what this process knows.',
    ),
  replayAnswers: Ttl.optional().describe(
    'How long the final response to a write with a key is kept, and sent to its repeats by the same client. If absent: not at all.',
  ),
  replaysErrors: z
    .boolean()
    .optional()
    .describe(
      'Whether the upstream replays its own 500 to a repeat (true: a retry is pointless) or executes the write again (false: a retry is not safe). Unknown if absent.',
    ),
});

type IdempotencyInput = z.output<typeof IdempotencyInputSchema>;
type IdempotencyInEffect = IdempotencyInput & { readonly header: string | false };

/**
 * How an upstream recognises a repeated write. With `jsonField`, `header` is off unless it is written: a header that the
 * upstream does not read would make writes look safe to repeat.
 */
export const IdempotencySchema = z.codec(IdempotencyInputSchema, z.custom<IdempotencyInEffect>(), {
  decode: (written) => ({ ...written, header: written.header ?? defaultHeader(written) }),
  encode: (inEffect) => inEffect,
});

function defaultHeader({ jsonField }: IdempotencyInput): string | false {
  return jsonField === undefined ? 'Idempotency-Key' : false;
}

/** Whether the upstream recognises keys at all: in a header or in a JSON body. */
export function recognisesKeys({ header, jsonField }: Pick<IdempotencyInEffect, 'header' | 'jsonField'>): boolean {
  return header !== false || jsonField !== undefined;
}
