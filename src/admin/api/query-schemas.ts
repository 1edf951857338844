/** What may be asked for in the query of a URL. */
import { z } from 'zod';
import { suggest } from '../../config/values/suggest.ts';
import { BlockQuery, PinQuery } from './action-schemas.ts';
import type { RouteName } from './api-routes.ts';
import { ClientState, Outcome } from './response-schemas.ts';

const MOST_ROWS = 500;
const MOST_MOMENTS = 500;

function limitOf(most: number, usual: number): z.ZodDefault<z.ZodCoercedNumber> {
  const range = `expected 1 to ${most}`;
  return z.coerce
    .number('expected a number')
    .int('expected a whole number')
    .min(1, range)
    .max(most, range)
    .default(usual);
}
const Cursor = z.string().max(2000).optional().describe('`next` of the page before.');
const Part = z.string().min(1).max(200).optional();

export const ClientsQuery = z.strictObject({
  state: ClientState.optional(),
  search: Part.describe('A part of the key.'),
  upstream: Part,
  limit: limitOf(MOST_ROWS, 50),
  cursor: Cursor,
});
export const RequestsQuery = z.strictObject({
  outcome: Outcome.optional(),
  client: Part,
  upstream: Part,
  limit: limitOf(MOST_ROWS, 50),
  cursor: Cursor,
});
export const TimelineQuery = z.strictObject({ limit: limitOf(MOST_MOMENTS, 200) });

const None = z.strictObject({});

/** By the name of the route. */
export const QUERIES = {
  status: None,
  clients: ClientsQuery,
  requests: RequestsQuery,
  timeline: TimelineQuery,
  events: None,
  config: None,
  openapi: None,
  explain: None,
  pin: PinQuery,
  unpin: None,
  block: BlockQuery,
  unblock: None,
  reset: None,
  validate: None,
  drain: None,
} as const satisfies Readonly<Record<RouteName, z.ZodObject>>;

export type ClientsQuery = z.output<typeof ClientsQuery>;
export type RequestsQuery = z.output<typeof RequestsQuery>;

export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

/** @param query as Fastify reads it: a parameter that is given twice is a list */
export function parseQuery<T>(schema: z.ZodObject & z.ZodType<T>, query: unknown): Parsed<T> {
  const parsed = schema.safeParse(query);
  if (parsed.success) return { ok: true, value: parsed.data };
  return {
    ok: false,
    problem: parsed.error.issues.map((issue) => explain(issue, query, Object.keys(schema.shape))).join('; '),
  };
}

function explain(issue: z.core.$ZodIssue, query: unknown, known: readonly string[]): string {
  if (issue.code !== 'unrecognized_keys') {
    const meant: unknown = issue.code === 'custom' ? issue.params?.['suggestion'] : undefined;
    const [name = ''] = issue.path;
    const isGiven = typeof query === 'object' && query !== null && Object.hasOwn(query, name);
    const message = isGiven ? issue.message : 'is needed, such as ?rate=50/s';
    return `${issue.path.join('.')}: ${message}${typeof meant === 'string' ? ` (did you mean ${meant}?)` : ''}`;
  }
  return issue.keys.map((key) => explainUnknown(key, known)).join('; ');
}

function explainUnknown(key: string, known: readonly string[]): string {
  if (/token/i.test(key)) return 'a token has no place in a URL, where others may read it: send Authorization: Bearer';
  const meant = suggest(key, known);
  const hint =
    meant === undefined
      ? known.length === 0
        ? 'there is none here'
        : `there is ${known.join(', ')}`
      : `did you mean ${meant}?`;
  return `unknown parameter '${key.slice(0, 50)}' (${hint})`;
}
