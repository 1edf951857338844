/** Schemas of the query parameters. */
import { z } from 'zod';
import { suggest } from '../../config/values/suggest.ts';
import { BlockQuerySchema, PinQuerySchema } from './action-schemas.ts';
import type { ApiRouteName } from './api-routes.ts';
import { DeliveryStateSchema } from './delivery-schemas.ts';
import { KeyStateSchema } from './key-schemas.ts';
import { ClientStateSchema, OutcomeSchema, TimelineKindSchema } from './response-schemas.ts';

const MAX_ROWS = 500;
const MAX_TIMELINE_EVENTS = 500;
/** Characters of an idempotency key: more than upstreams accept. */
const MAX_KEY = 4000;

function limitParameter(max: number, defaultValue: number): z.ZodDefault<z.ZodCoercedNumber> {
  const range = `expected 1 to ${max}`;
  return z.coerce
    .number('expected a number')
    .int('expected a whole number')
    .min(1, range)
    .max(max, range)
    .default(defaultValue);
}
const Cursor = z.string().max(2000).optional().describe('`next` of the previous page.');
const SearchText = z.string().min(1).max(200).optional();

export const ClientsQuery = z.strictObject({
  state: ClientStateSchema.optional(),
  search: SearchText.describe('Part of the key.'),
  upstream: SearchText,
  limit: limitParameter(MAX_ROWS, 50),
  cursor: Cursor,
});
export const RequestsQuery = z.strictObject({
  outcome: OutcomeSchema.optional(),
  client: SearchText,
  upstream: SearchText,
  limit: limitParameter(MAX_ROWS, 50),
  cursor: Cursor,
});
export const TimelineQuery = z.strictObject({
  limit: limitParameter(MAX_TIMELINE_EVENTS, 200),
  exclude: TimelineKindSchema.optional().describe('Leaves out the events of this kind.'),
});

export const KeysQuery = z.strictObject({
  upstream: SearchText,
  state: z
    .enum([...KeyStateSchema.options, 'open'])
    .optional()
    .describe('open: in_progress or unresolved.'),
  id: SearchText.describe('At least eight first digits of an id.'),
  key: z.string().min(1).max(MAX_KEY).optional().describe('The whole idempotency key.'),
  order: z.enum(['newest', 'oldest']).default('newest').describe('By the time of the first send.'),
  limit: limitParameter(MAX_ROWS, 50),
});

export const DeliveriesQuery = z.strictObject({
  state: z
    .enum([...DeliveryStateSchema.options, 'open'])
    .optional()
    .describe('open: waiting or sending.'),
  route: SearchText.describe('The whole name of the route.'),
  order: z.enum(['oldest', 'newest']).default('oldest').describe('By acceptance.'),
  after: z.uuid('expected the id of a delivery').optional().describe('`next` of the previous page, or any id.'),
  limit: limitParameter(MAX_ROWS, 50),
});
export const DeliveryQuery = z.strictObject({
  message: z.enum(['true', 'false']).default('false').describe('true: with its request, which needs the token.'),
});

const NoParameters = z.strictObject({});

/** By route name. */
export const QUERY_SCHEMAS = {
  status: NoParameters,
  history: NoParameters,
  clients: ClientsQuery,
  requests: RequestsQuery,
  timeline: TimelineQuery,
  events: NoParameters,
  config: NoParameters,
  openapi: NoParameters,
  explain: NoParameters,
  keys: KeysQuery,
  key: NoParameters,
  forget: NoParameters,
  deliveries: DeliveriesQuery,
  delivery: DeliveryQuery,
  retry: NoParameters,
  cancel: NoParameters,
  pin: PinQuerySchema,
  unpin: NoParameters,
  block: BlockQuerySchema,
  unblock: NoParameters,
  reset: NoParameters,
  clientQuotas: NoParameters,
  resetQuotas: NoParameters,
  validate: NoParameters,
  drain: NoParameters,
} as const satisfies Readonly<Record<ApiRouteName, z.ZodObject>>;

export type ClientsQuery = z.output<typeof ClientsQuery>;
export type RequestsQuery = z.output<typeof RequestsQuery>;
export type KeysQuery = z.output<typeof KeysQuery>;
export type DeliveriesQuery = z.output<typeof DeliveriesQuery>;
export type DeliveryQuery = z.output<typeof DeliveryQuery>;
export type TimelineQuery = z.output<typeof TimelineQuery>;

export type ParsedQuery<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: string };

/** @param query as Fastify parses it: a repeated parameter is a list */
export function parseQuery<T>(schema: z.ZodObject & z.ZodType<T>, query: unknown): ParsedQuery<T> {
  const parsed = schema.safeParse(query);
  if (parsed.success) return { ok: true, value: parsed.data };
  return {
    ok: false,
    problem: parsed.error.issues.map((issue) => describeQueryIssue(issue, query, Object.keys(schema.shape))).join('; '),
  };
}

function describeQueryIssue(issue: z.core.$ZodIssue, query: unknown, known: readonly string[]): string {
  if (issue.code !== 'unrecognized_keys') {
    const suggestion: unknown = issue.code === 'custom' ? issue.params?.['suggestion'] : undefined;
    const [name = ''] = issue.path;
    const isGiven = typeof query === 'object' && query !== null && Object.hasOwn(query, name);
    const message = isGiven ? issue.message : 'is required, such as ?rate=50/s';
    return `${issue.path.join('.')}: ${message}${typeof suggestion === 'string' ? ` (did you mean ${suggestion}?)` : ''}`;
  }
  return issue.keys.map((key) => describeUnknownParameter(key, known)).join('; ');
}

function describeUnknownParameter(key: string, known: readonly string[]): string {
  if (/token/i.test(key)) return 'a token must not be part of a URL, which others may read: send Authorization: Bearer';
  const suggestion = suggest(key, known);
  const hint =
    suggestion === undefined
      ? known.length === 0
        ? 'this path takes none'
        : `expected ${known.join(', ')}`
      : `did you mean ${suggestion}?`;
  return `unknown parameter '${key.slice(0, 50)}' (${hint})`;
}
