/** What was learned, as it is written down for the next process. */
import { z } from 'zod';
import type { QuotaOwner } from '../../core/quota/requester.ts';
import type { Block } from '../../core/rate/breaker/active-block.ts';
import { BLOCK_CAUSES } from '../../core/rate/breaker/active-block.ts';
import { SOURCE_NUMBERS } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Learned, LearnedLimit } from './learned-state.ts';

const VERSION = 1;

/** A rate that is older says little of the upstream as it is now; what is blocked, or held, has a time of its own. */
export const RATES_LAST: Millis = 3_600_000;
/** What nobody has tried again for so long may have come back meanwhile. */
export const BLOCKS_LAST: Millis = 60_000;
/** A clock that was set back by more than this makes all times worthless. */
const CLOCK_SET: Millis = 60_000;

/** What times and names mean to the process that writes or reads. */
export interface StateContext {
  /** Milliseconds of the epoch, and of the monotonic clock at the same moment. */
  readonly wallClock: Millis;
  readonly now: Millis;
  /** Tells whether clients' hashes are the same; undefined where they are another process's alone. */
  readonly hashedBy: string | undefined;
  /** Where each upstream is. */
  readonly origins: ReadonlyMap<string, readonly string[]>;
}

export type StateRead =
  | {
      readonly kind: 'learned';
      readonly learned: Learned /** What was left out, and why. */;
      readonly leftOut: string[];
    }
  | { readonly kind: 'ignored'; readonly why: string };

const Rate = z.number().positive();
const Time = z.iso.datetime();
const StateText = z.strictObject({
  version: z.literal(VERSION),
  writtenAt: Time,
  hashedBy: z.string().optional(),
  upstreams: z.record(z.string(), z.strictObject({ origins: z.array(z.string()) })),
  limits: z.array(
    z.strictObject({
      upstream: z.string(),
      nested: z.string().default(''),
      scope: z.enum(['upstream', 'client', 'credential']),
      key: z.string(),
      rate: Rate.optional(),
      ceiling: Rate.optional(),
      places: z.int().min(1).optional(),
      blockedUntil: Time.optional(),
      // Of a quota that blocks it: whom that is about.
      quotaOf: z
        .strictObject({
          credential: z.number().optional(),
          client: z.number().optional(),
          isCommon: z.boolean(),
          isSpent: z.boolean(),
        })
        .optional(),
      // Of whom and what nothing gets through, and when it is tried next.
      block: z
        .strictObject({
          cause: z.enum(BLOCK_CAUSES),
          scope: z.array(z.number()).length(SOURCE_NUMBERS),
          since: Time,
          isPartial: z.boolean(),
          probeAt: Time,
          asked: z.number(),
          askedUntil: Time.optional(),
        })
        .optional(),
    }),
  ),
  holds: z.array(z.strictObject({ upstream: z.string(), client: z.string(), until: Time })),
});

type Written = z.output<typeof StateText>;
type WrittenBlock = NonNullable<Written['limits'][number]['block']>;
type WrittenOwner = Omit<QuotaOwner, 'until'> | NonNullable<Written['limits'][number]['quotaOf']>;

/** Clients are left out where the next process would call them something else. */
export function writeState({ limits, holds }: Learned, context: StateContext): string {
  const { wallClock, hashedBy, origins } = context;
  const isKept = ({ ref }: LearnedLimit): boolean =>
    origins.has(ref.upstream) && (!isHashed(ref) || hashedBy !== undefined);
  const when = (time: Millis): string => new Date(wallClock + time - context.now).toISOString();
  const state: Written = {
    version: VERSION,
    writtenAt: new Date(wallClock).toISOString(),
    hashedBy,
    upstreams: Object.fromEntries([...origins].map(([name, own]) => [name, { origins: [...own] }])),
    limits: limits.filter(isKept).map(({ ref, rate, ceiling, places, blockedUntil, quotaOwner, block }) => ({
      ...ref,
      rate,
      ceiling,
      places,
      blockedUntil: blockedUntil === undefined ? undefined : when(blockedUntil),
      quotaOf: quotaOwner === undefined ? undefined : withoutEnd(quotaOwner),
      block: block === undefined ? undefined : writeBlock(block, when),
    })),
    holds: (hashedBy === undefined ? [] : holds).flatMap(({ client, until }) => {
      const [upstream = '', hash = ''] = client.split('\0');
      return origins.has(upstream) ? [{ upstream, client: hash, until: when(until) }] : [];
    }),
  };
  return `${JSON.stringify(state)}\n`;
}

/** Never throws. */
export function readState(text: string, context: StateContext): StateRead {
  const state = parse(text);
  if (typeof state === 'string') return { kind: 'ignored', why: state };
  const age = context.wallClock - Date.parse(state.writtenAt);
  if (age < -CLOCK_SET) return { kind: 'ignored', why: 'it was written later than now: a clock has been set' };
  const leftOut: string[] = [];
  const known = new Set<string>();
  for (const [name, { origins }] of Object.entries(state.upstreams)) {
    const own = context.origins.get(name);
    if (own === undefined) leftOut.push(`${name}: no upstream has this name`);
    else if (!origins.some((origin) => own.includes(origin))) leftOut.push(`${name}: it is elsewhere now`);
    else known.add(name);
  }
  const isOld = age > RATES_LAST;
  if (isOld && state.limits.some(({ rate }) => rate !== undefined)) leftOut.push('rates: they are too old');
  const isSameHash = state.hashedBy !== undefined && state.hashedBy === context.hashedBy;
  const isOfClients = state.holds.length > 0 || state.limits.some(isHashed);
  if (isOfClients && !isSameHash) leftOut.push('clients: the secret is another');
  const learned = pick(state, { context, known, isOld, isSameHash });
  return { kind: 'learned', learned, leftOut };
}

interface Picking {
  readonly context: StateContext;
  readonly known: ReadonlySet<string>;
  readonly isOld: boolean;
  readonly isSameHash: boolean;
}

function pick({ limits, holds }: Written, { context, known, isOld, isSameHash }: Picking): Learned {
  const at = (time: string): Millis => context.now + Date.parse(time) - context.wallClock;
  /** Undefined where it is over. */
  const until = (time: string | undefined): Millis | undefined => {
    const end = time === undefined ? context.now : at(time);
    return end > context.now ? end : undefined;
  };
  return {
    limits: limits
      .filter((limit) => known.has(limit.upstream) && (!isHashed(limit) || isSameHash))
      .map(({ upstream, nested, scope, key, rate, ceiling, places, blockedUntil, quotaOf, block }) => {
        // Of a quota of somebody who is not known any more: who is told so again is held again.
        const isKnown = block === undefined || isSameHash || isOfAll(block);
        const isStop = isKnown && (quotaOf === undefined || isSameHash || isOfAnybody(quotaOf));
        // Of a block that is left out, it was when that was to be tried next.
        const end = isStop ? until(blockedUntil) : undefined;
        const { credential, client, isCommon = false, isSpent = false } = quotaOf ?? {};
        return {
          ref: { upstream, nested, scope, key },
          rate: isOld ? undefined : rate,
          ceiling: isOld ? undefined : ceiling,
          places: isOld ? undefined : places,
          blockedUntil: end,
          block: block !== undefined && isKnown ? readBlock(block, at, context.now) : undefined,
          quotaOwner:
            end === undefined || quotaOf === undefined
              ? undefined
              : { credential, client, isCommon, isSpent, until: end },
        };
      })
      .filter(
        ({ rate, blockedUntil, block }) => rate !== undefined || blockedUntil !== undefined || block !== undefined,
      ),
    holds: holds.flatMap(({ upstream, client, until: time }) => {
      const end = until(time);
      return known.has(upstream) && isSameHash && end !== undefined
        ? [{ client: `${upstream}\0${client}`, until: end }]
        : [];
    }),
  };
}

/** Of all clients that show no credential: that is the same to every process. */
function isOfAnybody({ credential, isCommon }: WrittenOwner): boolean {
  return (credential === undefined || credential === 0) && isCommon;
}

/** Of all requests: what others have in common goes by hashes. */
function isOfAll({ scope }: WrittenBlock): boolean {
  return scope.every((number) => number === 0);
}

function writeBlock(block: Block, when: (time: Millis) => string): WrittenBlock {
  const { cause, scope, since, isPartial, probeAt, asked, askedUntil } = block;
  const until = Number.isFinite(askedUntil) ? when(askedUntil) : undefined;
  return { cause, scope: [...scope], since: when(since), isPartial, probeAt: when(probeAt), asked, askedUntil: until };
}

function readBlock(block: WrittenBlock, at: (time: string) => Millis, now: Millis): Block | undefined {
  const probeAt = at(block.probeAt);
  if (now - probeAt > BLOCKS_LAST) return undefined;
  const askedUntil = block.askedUntil === undefined ? Number.NEGATIVE_INFINITY : at(block.askedUntil);
  return { ...block, since: at(block.since), probeAt, expectedAt: probeAt, askedUntil };
}

function withoutEnd({ credential, client, isCommon, isSpent }: QuotaOwner): WrittenOwner {
  return { credential, client, isCommon, isSpent };
}

/** Whether it goes by a hash, which the next process may not know. */
function isHashed({ scope, key }: Pick<LearnedLimit['ref'], 'scope' | 'key'>): boolean {
  return scope !== 'upstream' || key.includes('#');
}

function parse(text: string): Written | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'it is broken';
  }
  const parsed = StateText.safeParse(value);
  if (parsed.success) return parsed.data;
  const isOther = typeof value === 'object' && value !== null && 'version' in value && value.version !== VERSION;
  return isOther ? `it is of another version of Tidegate than this` : 'it is broken';
}
