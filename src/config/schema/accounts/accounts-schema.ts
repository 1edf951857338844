import { z } from 'zod';
import { HeaderName, NAME_EXPECTED, NAME_PATTERN } from '../name-schemas.ts';
import { PositiveDuration } from '../../values/unit-schemas.ts';

/** A value that an HTTP field may have: visible characters, with spaces and tabs between them (RFC 9110 §5.5). */
const FIELD_VALUE = /^[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/;

const AccountSchema = z.strictObject({
  name: z.string().regex(NAME_PATTERN, NAME_EXPECTED).describe('Its name in metrics, logs and the state.'),
  header: HeaderName.prefault('Authorization').describe(
    'The header that carries the credential; a client’s own is not forwarded.',
  ),
  value: z
    .string()
    .regex(FIELD_VALUE, 'not the value of a header: empty, or with a line break or a space at an end')
    .describe('The credential as the header carries it, such as Bearer and a token; best from a variable or a file.'),
});

export const AccountsSchema = z
  .array(AccountSchema)
  .min(1)
  .max(64)
  .optional()
  .describe('Credentials that the gateway holds; each account has its own learned limit (docs/accounts.md).');

export const AccountQuarantineSchema = z.strictObject({
  statuses: z
    .array(z.int().min(400).max(499))
    .min(1)
    .prefault([401])
    .describe('Statuses that say that the upstream does not accept the credential: 401, or 401 and 403.'),
  after: z
    .int()
    .min(1)
    .max(1000)
    .prefault(3)
    .describe(
      'Such responses in a row that exclude a client from an account; one is enough if another account is then accepted.',
    ),
  interval: PositiveDuration.prefault('30s').describe('Time to the first probe; it doubles after each failed one.'),
  maxInterval: PositiveDuration.prefault('10m').describe('Maximum time between probes.'),
});
