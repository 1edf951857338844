import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { AllowSchema, ClientAuthSchema } from './auth/client-auth-schema.ts';
import { BackOffOverrideSchema } from './backoff-schema.ts';
import { HeaderName, Name } from './name-schemas.ts';
import { Rate } from '../values/unit-schemas.ts';
import { suggest } from '../values/suggest.ts';
import type { ParseResult } from '../values/text-codec.ts';
import { parseFailure, textCodec } from '../values/text-codec.ts';

/** Where the identity of a client comes from. The first key that a request has applies. */
export type ClientKey =
  /** The value of a header. */
  | { readonly kind: 'header'; readonly name: string }
  /** The hash of `Authorization`. */
  | { readonly kind: 'bearer' }
  /** The address; of IPv6, its /64. */
  | { readonly kind: 'ip' }
  /** A segment of the path, counted from 1. */
  | { readonly kind: 'path'; readonly segment: number };

const EXPECTED_KEY = 'header:NAME, bearer, ip or path:N';

const ClientKeySchema = textCodec<ClientKey>({
  expected: EXPECTED_KEY,
  forms: [{ type: 'string', pattern: "^(?:bearer|ip|path:\\d{1,2}|header:[!#$%&'*+.^_`|~0-9A-Za-z-]+)$" }],
  parse: parseClientKey,
  format: formatClientKey,
});

const EXPECTED_BLOCK = 'an address, a block such as 10.0.0.0/8 or fd00::/8, or unix';

/** Stands for every peer on our own Unix socket. */
export const UNIX_PEER = 'unix';

const AddressBlock = textCodec<string>({
  expected: EXPECTED_BLOCK,
  forms: [{ type: 'string', pattern: '^[0-9A-Fa-f.:]+(?:/\\d{1,3})?$' }, { const: UNIX_PEER }],
  parse: parseAddressBlock,
  format: (block) => block,
});

const ClassMatch = z
  .strictObject({
    header: z
      .record(HeaderName, z.string().min(1))
      .optional()
      .describe('Request headers by name, each with a value; * matches any text. All must match.'),
    key: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe('Client keys, one of which must match; * matches any text.'),
  })
  .refine(({ header, key }) => key !== undefined || Object.keys(header ?? {}).length > 0, {
    error: 'needs header or key: with neither, it would match every request',
  })
  .meta({ minProperties: 1 });

/** Bounded, because each name adds time series. */
const MAX_NAMES = 100;

const ClientClass = z.strictObject({
  match: ClassMatch.describe('Which requests belong to this class; the first matching class applies.'),
  weight: z
    .number()
    .min(0.01)
    .max(1000)
    .prefault(1)
    .describe('Weight of its clients when a limited rate is shared; clients without a class have 1.'),
  maxRate: Rate.optional().describe(
    'Maximum rate for all its clients together, at each upstream; other clients may use the rest.',
  ),
  backOff: BackOffOverrideSchema.optional().describe(
    'Delays before its retries; options left out are those of the upstream.',
  ),
  allow: AllowSchema.optional().describe(
    'The only routes and methods that its clients may use; others get a 403. Needs clients.auth.',
  ),
});

export const ClientsSchema = z.strictObject({
  key: z
    .array(ClientKeySchema)
    .min(1)
    .prefault(['ip'])
    .describe(
      'How a client is identified; the first that a request has applies: header:NAME, bearer (hash of Authorization), ip (IPv6 by /64), path:N.',
    ),
  trustedProxies: z
    .array(AddressBlock)
    .prefault([])
    .describe(
      'Addresses of proxies in front whose X-Forwarded-For is trusted; unix for whatever connects to our Unix socket.',
    ),
  maxTracked: z
    .int()
    .min(1)
    .max(10_000_000)
    .prefault(100_000)
    .describe('Maximum clients remembered; those in their normal state are forgotten first.'),
  classes: z
    .record(Name, ClientClass)
    .prefault({})
    .describe('Classes of requests by name, with their priority when the rate is limited.'),
  names: z
    .record(Name, z.array(z.string().min(1)).min(1))
    .refine(
      (names) => Object.keys(names).length <= MAX_NAMES,
      `at most ${MAX_NAMES} names: each adds several time series to the metrics`,
    )
    .prefault({})
    .describe(
      'Clients with metrics of their own, by name, each with its client keys; * matches any text, the first matching name applies.',
    ),
  auth: ClientAuthSchema.optional().describe(
    'Accept only clients that prove their names, which then identify them in place of key (docs/clients.md).',
  ),
});

/** An item of `clients.key`, or of the comma-separated list of `--client-key`. */
export function parseClientKey(input: string | number): ParseResult<ClientKey> {
  const text = String(input);
  if (text === 'bearer' || text === 'ip') return { ok: true, value: { kind: text } };
  const [kind, ...rest] = text.split(':');
  const argument = rest.join(':');
  if (kind === 'header' && HeaderName.safeParse(argument).success) return { ok: true, value: { kind, name: argument } };
  const segment = Number(argument);
  if (kind === 'path' && /^\d{1,2}$/.test(argument) && segment >= 1) return { ok: true, value: { kind, segment } };
  return parseFailure(`expected ${EXPECTED_KEY}`, suggestKey(text));
}

export function formatClientKey(key: ClientKey): string {
  if (key.kind === 'header') return `header:${key.name}`;
  return key.kind === 'path' ? `path:${key.segment}` : key.kind;
}

function suggestKey(text: string): string | undefined {
  if (/^(?:x-[a-z-]+|[a-z]+-[a-z-]+)$/i.test(text)) return `header:${text}`;
  return suggest(text, ['ip', 'bearer', 'path:1']);
}

function parseAddressBlock(input: string | number): ParseResult<string> {
  if (input === UNIX_PEER) return { ok: true, value: input };
  const [address = '', bits, ...rest] = String(input).split('/');
  const isIPv6 = ipaddr.IPv6.isValid(address) && !address.includes('%');
  const maxPrefix = isIPv6 ? 128 : ipaddr.IPv4.isValidFourPartDecimal(address) ? 32 : undefined;
  if (maxPrefix === undefined || rest.length > 0) return parseFailure(`expected ${EXPECTED_BLOCK}`);
  if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= maxPrefix)) {
    return parseFailure(`the prefix length of this address is from 0 to ${maxPrefix}`);
  }
  return { ok: true, value: String(input) };
}
