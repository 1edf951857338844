import { z } from 'zod';
import { Lifetime } from '../values/ttl.ts';
import { AccountSource, USUAL_ACCOUNT } from '../values/account-source.ts';
import { HeaderName, Method } from './name-schemas.ts';
import { PathPattern } from '../values/path-pattern-schema.ts';

const ACCOUNT = 'header:NAME, jwt:CLAIM or jwt:HEADER:CLAIM';

const TtlOfPath = z.strictObject({
  path: PathPattern.describe('Paths, as the upstream sees them: * is one segment, ** at the end all below.'),
  method: Method.optional().describe('Only with this method.'),
  ttl: Lifetime.describe('How long their keys are remembered.'),
});

const IdempotencyAsWritten = z.strictObject({
  header: z
    .union([z.literal(false), HeaderName], 'expected the name of a header, or false')
    .optional()
    .describe(
      'The request header with the idempotency key; false where it knows none. Idempotency-Key if absent; false if absent beside a jsonField.',
    ),
  jsonField: z
    .string()
    .regex(/^[^.]{1,128}(?:\.[^.]{1,128}){0,7}$/, 'expected the name of a field, or names with dots between: a.b')
    .optional()
    .describe('Where the key stands in a JSON body: idempotency_key, or a.b for one in an object. It is only read.'),
  account: z
    .union(
      [z.literal('none'), z.array(AccountSource).min(1), AccountSource],
      `expected none, ${ACCOUNT}, or a list of these`,
    )
    .prefault(USUAL_ACCOUNT)
    .describe(
      'What names the account that a key belongs to: header:NAME, jwt:CLAIM of the bearer token, jwt:HEADER:CLAIM, a list of these, or none. Keys of other accounts are other writes.',
    ),
  replayedHeader: z
    .union([z.literal(false), HeaderName], 'expected the name of a header, or false')
    .prefault('Idempotent-Replayed')
    .describe('The header by which the upstream marks a stored answer with true; false where it has none.'),
  sharesKeys: z
    .boolean()
    .prefault(false)
    .describe('Whether all urls know the same keys, so that a write may be sent again to another of them.'),
  generate: z
    .boolean()
    .prefault(false)
    .describe('Give a POST or PATCH without a key one of ours, in header, so that it can be sent again.'),
  ttl: z
    .union([z.array(TtlOfPath).min(1), Lifetime], 'expected a time such as 24h, or a list of {path, ttl}')
    .optional()
    .describe(
      'How long keys are remembered; or a list of {path, method, ttl}, of which the first that fits holds. After that a repeat is a new write.',
    ),
  concurrent: z
    .enum(['wait', 'refuse', 'pass'])
    .prefault('wait')
    .describe('A request whose key is under way with another waits for that, is refused with 409, or passes.'),
  replaysErrors: z
    .boolean()
    .optional()
    .describe(
      'Whether a 500 of its own is told again to a repeat (a retry is pointless), or the write done anew (a retry is not safe). Not known if absent.',
    ),
});

type AsWritten = z.output<typeof IdempotencyAsWritten>;
type InEffect = AsWritten & { readonly header: string | false };

/**
 * How an upstream recognises a write that it has seen before. One that looks into bodies is not taken to look into a header as
 * well unless that is said: a header that protects nothing would make writes look safe to repeat.
 */
export const Idempotency = z.codec(IdempotencyAsWritten, z.custom<InEffect>(), {
  decode: (written) => ({ ...written, header: written.header ?? usualHeader(written) }),
  encode: (inEffect) => inEffect,
});

function usualHeader({ jsonField }: AsWritten): string | false {
  return jsonField === undefined ? 'Idempotency-Key' : false;
}
