import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { BackOffOverride } from './backoff-schema.ts';
import { HeaderName, Name } from './name-schemas.ts';
import { Rate } from '../values/unit-schemas.ts';
import { suggest } from '../values/suggest.ts';
import type { Reading } from '../values/text-codec.ts';
import { misread, written } from '../values/text-codec.ts';

/** Where a client's identity is read. The first that a request has decides. */
export type ClientKey =
  /** The value of a header. */
  | { readonly kind: 'header'; readonly name: string }
  /** The hash of `Authorization`. */
  | { readonly kind: 'bearer' }
  /** The address; IPv6 by its /64. */
  | { readonly kind: 'ip' }
  /** A segment of the path, counted from 1. */
  | { readonly kind: 'path'; readonly segment: number };

const EXPECTED_KEY = 'header:NAME, bearer, ip or path:N';

const Key = written<ClientKey>({
  expected: EXPECTED_KEY,
  forms: [{ type: 'string', pattern: "^(?:bearer|ip|path:\\d{1,2}|header:[!#$%&'*+.^_`|~0-9A-Za-z-]+)$" }],
  read: readClientKey,
  write: writeClientKey,
});

const EXPECTED_BLOCK = 'an address, a block such as 10.0.0.0/8 or fd00::/8, or unix';

/** Whoever connects to our own Unix socket. */
export const UNIX_PEER = 'unix';

const Block = written<string>({
  expected: EXPECTED_BLOCK,
  forms: [{ type: 'string', pattern: '^[0-9A-Fa-f.:]+(?:/\\d{1,3})?$' }, { const: UNIX_PEER }],
  read: readBlock,
  write: (block) => block,
});

const Match = z
  .strictObject({
    header: z
      .record(HeaderName, z.string().min(1))
      .optional()
      .describe('Request headers by name, each with a value; * stands for anything. All must match.'),
    key: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe('Client keys, one of which must match; * stands for anything.'),
  })
  .refine(({ header, key }) => key !== undefined || Object.keys(header ?? {}).length > 0, {
    error: 'header or key is needed: this would match everything',
  })
  .meta({ minProperties: 1 });

/** A metric that tells clients apart has to stay small, whoever comes. */
const MOST_NAMES = 100;

const Class = z.strictObject({
  match: Match.describe('Which requests are of this class; the first class that matches has them.'),
  weight: z
    .number()
    .min(0.01)
    .max(1000)
    .prefault(1)
    .describe('Its clients’ share of a limited rate, beside the 1 of others.'),
  maxRate: Rate.optional().describe(
    'Never send faster than this for all its clients together, at each upstream; others may use what they leave.',
  ),
  backOff: BackOffOverride.optional().describe('Delays before its retries; what is left out is as in the upstream.'),
});

export const Clients = z.strictObject({
  key: z
    .array(Key)
    .min(1)
    .prefault(['ip'])
    .describe(
      'What tells clients apart, tried in order: header:NAME, bearer (hash of Authorization), ip (IPv6 by /64), path:N.',
    ),
  trustedProxies: z
    .array(Block)
    .prefault([])
    .describe(
      'Addresses of proxies in front, whose X-Forwarded-For is believed; unix: those that connect to our Unix socket.',
    ),
  maxTracked: z
    .int()
    .min(1)
    .max(10_000_000)
    .prefault(100_000)
    .describe('Clients remembered at a time; the calmest are forgotten first.'),
  classes: z
    .record(Name, Class)
    .prefault({})
    .describe('Classes of requests by name: who goes first when the rate is limited.'),
  names: z
    .record(Name, z.array(z.string().min(1)).min(1))
    .refine(
      (names) => Object.keys(names).length <= MOST_NAMES,
      `at most ${MOST_NAMES} names: each is seven series of a metric`,
    )
    .prefault({})
    .describe(
      'Clients that metrics tell by name, each with the keys that are its own; * stands for anything, the first name that matches has it.',
    ),
});

/** One of the comma list of `--client-key`, or an item of `clients.key`. */
export function readClientKey(input: string | number): Reading<ClientKey> {
  const text = String(input);
  if (text === 'bearer' || text === 'ip') return { ok: true, value: { kind: text } };
  const [kind, ...rest] = text.split(':');
  const argument = rest.join(':');
  if (kind === 'header' && HeaderName.safeParse(argument).success) return { ok: true, value: { kind, name: argument } };
  const segment = Number(argument);
  if (kind === 'path' && /^\d{1,2}$/.test(argument) && segment >= 1) return { ok: true, value: { kind, segment } };
  return misread(`expected ${EXPECTED_KEY}`, suggestKey(text));
}

export function writeClientKey(key: ClientKey): string {
  if (key.kind === 'header') return `header:${key.name}`;
  return key.kind === 'path' ? `path:${key.segment}` : key.kind;
}

function suggestKey(text: string): string | undefined {
  if (/^(?:x-[a-z-]+|[a-z]+-[a-z-]+)$/i.test(text)) return `header:${text}`;
  return suggest(text, ['ip', 'bearer', 'path:1']);
}

function readBlock(input: string | number): Reading<string> {
  if (input === UNIX_PEER) return { ok: true, value: input };
  const [address = '', bits, ...rest] = String(input).split('/');
  const six = ipaddr.IPv6.isValid(address) && !address.includes('%');
  const longest = six ? 128 : ipaddr.IPv4.isValidFourPartDecimal(address) ? 32 : undefined;
  if (longest === undefined || rest.length > 0) return misread(`expected ${EXPECTED_BLOCK}`);
  if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= longest)) {
    return misread(`a prefix of this address is from 0 to ${longest}`);
  }
  return { ok: true, value: String(input) };
}
