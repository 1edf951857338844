import { z } from 'zod';
import { CALENDAR_UNITS, type CalendarUnit } from '../../../core/quota/calendar/quota-period.ts';
import type { Millis } from '../../../core/scalars.ts';
import { toList } from '../../values/one-or-many.ts';
import { DURATION_PATTERN, formatDuration, parseDuration } from '../../values/quantities.ts';
import { suggest } from '../../values/suggest.ts';
import { isMapping } from '../../values/plain-object.ts';
import type { ParseResult } from '../../values/text-codec.ts';
import { parseFailure, textCodec } from '../../values/text-codec.ts';
import { TimeZoneSchema } from '../../values/time-zone.ts';
import { LimitNameSchema } from './nested-limits-schema.ts';

/** A unit of the calendar, or a rolling period. */
export type QuotaPer =
  | { readonly kind: 'calendar'; readonly unit: CalendarUnit }
  | { readonly kind: 'rolling'; readonly length: Millis };

const PER_EXPECTED = 'hour, day, week, month, or a rolling period such as rolling 24h';
const ROLLING = 'rolling ';
const MIN_ROLLING: Millis = 60_000;

const PerSchema = textCodec<QuotaPer>({
  expected: PER_EXPECTED,
  forms: [
    { enum: [...CALENDAR_UNITS] },
    { type: 'string', pattern: DURATION_PATTERN.source.replace('^', `^${ROLLING}`) },
  ],
  parse: parsePer,
  format: formatPer,
});

function parsePer(input: string | number): ParseResult<QuotaPer> {
  const text = String(input);
  const unit = CALENDAR_UNITS.find((known) => known === text);
  if (unit !== undefined) return { ok: true, value: { kind: 'calendar', unit } };
  const length = text.startsWith(ROLLING) ? parseDuration(text.slice(ROLLING.length)) : undefined;
  if (length?.ok === true) {
    if (length.value >= MIN_ROLLING) return { ok: true, value: { kind: 'rolling', length: length.value } };
    return parseFailure('a rolling period must be at least 1m: use rateLimit.maxRate for a shorter one');
  }
  if (length !== undefined) return parseFailure(`after rolling, ${length.message}`, `${ROLLING}24h`);
  if (DURATION_PATTERN.test(text)) return parseFailure(`expected ${PER_EXPECTED}`, `${ROLLING}${text}`);
  return parseFailure(`expected ${PER_EXPECTED}`, suggest(text, CALENDAR_UNITS));
}

export function formatPer(per: QuotaPer): string {
  return per.kind === 'calendar' ? per.unit : `${ROLLING}${formatDuration(per.length)}`;
}

/** A part of a quota: a share of it in [0, 1), or a number of requests. */
export type QuotaReserve = { readonly share: number } | { readonly requests: number };

const RESERVE_EXPECTED = 'a share such as 10%, or a number of requests';
const SHARE_PATTERN = /^(\d{1,2}(?:\.\d{1,2})?)%$/;

const ReserveSchema = textCodec<QuotaReserve>({
  expected: RESERVE_EXPECTED,
  forms: [
    { type: 'string', pattern: SHARE_PATTERN.source },
    { type: 'integer', minimum: 0 },
  ],
  parse(input) {
    if (typeof input === 'number') {
      if (Number.isSafeInteger(input) && input >= 0) return { ok: true, value: { requests: input } };
      const percent = input > 0 && input < 1 ? `${Number((100 * input).toFixed(2))}%` : undefined;
      return parseFailure(`expected ${RESERVE_EXPECTED}`, percent);
    }
    const [, percent] = SHARE_PATTERN.exec(input) ?? [];
    if (percent !== undefined) return { ok: true, value: { share: Number(percent) / 100 } };
    const bare = input.replaceAll(' ', '');
    return parseFailure(`expected ${RESERVE_EXPECTED}`, SHARE_PATTERN.test(bare) ? bare : undefined);
  },
  format: (reserve) => ('share' in reserve ? `${Number((100 * reserve.share).toFixed(2))}%` : reserve.requests),
});

const QuotaSchema = z.strictObject({
  name: LimitNameSchema.optional().describe(
    'The name in metrics, explanations and rejections; the period when absent, such as day or rolling-24h.',
  ),
  limit: z
    .int()
    .min(1)
    .max(1_000_000_000_000)
    .describe('Requests in a period: attempts that are sent, retries included.'),
  per: PerSchema.describe('The period: hour, day, week (from Monday), month, or a rolling one such as rolling 24h.'),
  timezone: TimeZoneSchema.optional().describe(
    'The IANA time zone in which an hour, day, week or month begins, such as America/Los_Angeles; UTC when absent.',
  ),
  reserve: ReserveSchema.prefault('0%').describe(
    'What is kept for requests of classes with a weight above 1: a share such as 10%, or a number of requests.',
  ),
  pace: z
    .enum(['even', 'asNeeded'])
    .prefault('asNeeded')
    .describe('even: what is left is spread over the rest of the period; asNeeded: it may be used up early.'),
});

/** Quotas that the upstream has published, beside its rate. */
export const QuotasSchema = z
  .array(QuotaSchema)
  .max(8)
  .prefault([])
  .describe(
    'Quotas of the upstream by hour, day, week or month, beside its rate. When one is used up, requests are refused until it is reset (docs/quotas.md).',
  );

export type QuotaConfig = z.output<typeof QuotaSchema>;

const ClientQuotaFields = QuotaSchema.omit({ reserve: true, pace: true }).extend({
  limit: QuotaSchema.shape.limit.describe('Requests in a period: those of clients, whatever is retried.'),
});

/** A quota of clients. It has no reserve, because all clients of a class have the same weight, and no pace: `maxRate` limits a rate. */
export type ClientQuotaConfig = z.output<typeof ClientQuotaFields>;

const SHORT_QUOTA_EXPECTED = 'a quota such as 10000/day or 1000/rolling 24h, or a mapping with limit and per';
const SHORT_QUOTA_PATTERN = /^(\d+)\/(.+)$/;

const ShortQuotaSchema = textCodec<ClientQuotaConfig>({
  expected: SHORT_QUOTA_EXPECTED,
  forms: [{ type: 'string', pattern: SHORT_QUOTA_PATTERN.source }],
  parse(input) {
    const [, limitText, perText = ''] = SHORT_QUOTA_PATTERN.exec(String(input)) ?? [];
    const limit = ClientQuotaFields.shape.limit.safeParse(Number(limitText));
    if (!limit.success) return parseFailure(`expected ${SHORT_QUOTA_EXPECTED}`);
    const per = parsePer(perText);
    if (per.ok) return { ok: true, value: { limit: limit.data, per: per.value } };
    const suggestion = per.suggestion === undefined ? undefined : `${limitText}/${per.suggestion}`;
    return parseFailure(`after /, ${per.message}`, suggestion);
  },
  format: ({ limit, per }) => `${limit}/${formatPer(per)}`,
  isValue: isShortQuota,
});

function isShortQuota(value: unknown): boolean {
  if (!isMapping(value)) return false;
  const { name, timezone } = { name: undefined, timezone: undefined, ...value };
  return name === undefined && timezone === undefined;
}

const MAX_CLIENT_QUOTAS = 8;

/** Quotas of a class of clients, or of each of its clients: one, or a list. */
export const ClientQuotasSchema = z.union([
  ShortQuotaSchema,
  ClientQuotaFields,
  z
    .array(z.union([ShortQuotaSchema, ClientQuotaFields]))
    .min(1)
    .max(MAX_CLIENT_QUOTAS),
]);

/** Bytes of the heap that a quota of a single client takes, measured on Node 24 and rounded up. */
const BYTES_EACH: Readonly<Record<QuotaPer['kind'], number>> = { calendar: 1024, rolling: 7168 };

interface ClassWithQuotas {
  readonly perClient?: { readonly quota?: ClientQuotaConfig | readonly ClientQuotaConfig[] | undefined } | undefined;
}

/** The most bytes that the quotas of a single client take at an upstream; 0 if no class has such quotas. */
export function quotaBytesOfClient(classes: Readonly<Record<string, ClassWithQuotas>>): number {
  const bytes = Object.values(classes).map(({ perClient }) =>
    toList(perClient?.quota).reduce((sum, { per }) => sum + BYTES_EACH[per.kind], 0),
  );
  return Math.max(0, ...bytes);
}

/** The most quotas that a single client has at an upstream. */
export function quotaCountOfClient(classes: Readonly<Record<string, ClassWithQuotas>>): number {
  return Math.max(0, ...Object.values(classes).map(({ perClient }) => toList(perClient?.quota).length));
}

/** The name that the quota has, or gets from its period. */
export function quotaName({ name, per }: Pick<ClientQuotaConfig, 'name' | 'per'>): string {
  return name ?? formatPer(per).replace(' ', '-');
}

/** The number of requests that are reserved: rounded up, so that a reserve is never empty. */
export function reservedRequests({ limit, reserve }: Pick<QuotaConfig, 'limit' | 'reserve'>): number {
  return 'share' in reserve ? Math.ceil(Number((reserve.share * limit).toFixed(6))) : reserve.requests;
}
