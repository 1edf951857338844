/** The format of the state file. */
import { z } from 'zod';
import type { QuotaOwner } from '../../core/quota/requester.ts';
import type { BlockStatus } from '../../core/rate/breaker/active-block.ts';
import { BLOCK_CAUSES } from '../../core/rate/breaker/active-block.ts';
import { ATTRIBUTE_COUNT } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../core/scalars.ts';
import type { LearnedState, LearnedLimit } from './learned-state.ts';

const VERSION = 1;

/** An older rate says little about the upstream now. Blocks and holds have times of their own. */
export const RATE_MAX_AGE: Millis = 3_600_000;
/** A block whose probe has been due for longer is dropped: the upstream may have recovered. */
export const BLOCK_MAX_AGE: Millis = 60_000;
/** A file from further in the future is ignored: a clock was set back, and no time in it is right. */
const CLOCK_JUMP: Millis = 60_000;

/** The clocks, secret and upstreams of the process that writes or reads. */
export interface StateContext {
  /** Milliseconds since 1970; `now` is the monotonic clock at the same time. */
  readonly wallClock: Millis;
  readonly now: Millis;
  /** Equal where clients have the same hashes; undefined if hashes change with each process. */
  readonly secretFingerprint: string | undefined;
  /** The origins of each upstream. */
  readonly origins: ReadonlyMap<string, readonly string[]>;
  /** Of the configuration: see `costUnitOf`. */
  readonly unitOf: (upstream: string, nested: string) => string | undefined;
}

export type DecodedState =
  | {
      readonly kind: 'learned';
      readonly learned: LearnedState;
      /** What was left out, and why. */
      readonly leftOut: string[];
    }
  | { readonly kind: 'ignored'; readonly reason: string };

const Rate = z.number().positive();
const Time = z.iso.datetime();
const StateDocumentSchema = z.strictObject({
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
      unit: z.string().optional(),
      places: z.int().min(1).optional(),
      blockedUntil: Time.optional(),
      // The owner of the quota that blocks it.
      quotaOf: z
        .strictObject({
          credential: z.number().optional(),
          client: z.number().optional(),
          isCommon: z.boolean(),
          isSpent: z.boolean(),
        })
        .optional(),
      // The blocked requests, and the time of the next probe.
      block: z
        .strictObject({
          cause: z.enum(BLOCK_CAUSES),
          scope: z.array(z.number()).length(ATTRIBUTE_COUNT),
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

type StateDocument = z.output<typeof StateDocumentSchema>;
type BlockDocument = NonNullable<StateDocument['limits'][number]['block']>;
type QuotaOwnerDocument = Omit<QuotaOwner, 'until'> | NonNullable<StateDocument['limits'][number]['quotaOf']>;

/** Leaves out clients where their hashes change with each process. */
export function encodeState({ limits, holds }: LearnedState, context: StateContext): string {
  const { wallClock, secretFingerprint, origins } = context;
  const isKept = ({ ref }: LearnedLimit): boolean =>
    origins.has(ref.upstream) && (!usesClientHash(ref) || secretFingerprint !== undefined);
  const when = (time: Millis): string => new Date(wallClock + time - context.now).toISOString();
  const state: StateDocument = {
    version: VERSION,
    writtenAt: new Date(wallClock).toISOString(),
    hashedBy: secretFingerprint,
    upstreams: Object.fromEntries([...origins].map(([name, own]) => [name, { origins: [...own] }])),
    limits: limits.filter(isKept).map(({ ref, concurrencyLimit, blockedUntil, quotaOwner, block, ...rates }) => ({
      ...ref,
      ...rates,
      places: concurrencyLimit,
      blockedUntil: blockedUntil === undefined ? undefined : when(blockedUntil),
      quotaOf: quotaOwner === undefined ? undefined : withoutUntil(quotaOwner),
      block: block === undefined ? undefined : encodeBlock(block, when),
    })),
    holds: (secretFingerprint === undefined ? [] : holds).flatMap(({ client, until }) => {
      const [upstream = '', hash = ''] = client.split('\0');
      return origins.has(upstream) ? [{ upstream, client: hash, until: when(until) }] : [];
    }),
  };
  return `${JSON.stringify(state)}\n`;
}

/** Never throws. */
export function decodeState(text: string, context: StateContext): DecodedState {
  const state = parse(text);
  if (typeof state === 'string') return { kind: 'ignored', reason: state };
  const age = context.wallClock - Date.parse(state.writtenAt);
  if (age < -CLOCK_JUMP) return { kind: 'ignored', reason: 'it is dated in the future: a clock was set' };
  const leftOut: string[] = [];
  const known = new Set<string>();
  for (const [name, { origins }] of Object.entries(state.upstreams)) {
    const own = context.origins.get(name);
    if (own === undefined) leftOut.push(`${name}: no upstream has this name`);
    else if (!origins.some((origin) => own.includes(origin))) leftOut.push(`${name}: its origins have changed`);
    else known.add(name);
  }
  const isOld = age > RATE_MAX_AGE;
  if (isOld && state.limits.some(({ rate }) => rate !== undefined)) leftOut.push('rates: older than an hour');
  const isSameHash = state.hashedBy !== undefined && state.hashedBy === context.secretFingerprint;
  const isOfClients = state.holds.length > 0 || state.limits.some(usesClientHash);
  if (isOfClients && !isSameHash) leftOut.push('clients: the secret has changed');
  if (state.limits.some(({ upstream, nested, unit }) => unit !== context.unitOf(upstream, nested))) {
    leftOut.push('rates: what requests cost has changed');
  }
  const learned = selectKnown(state, { context, known, isOld, isSameHash });
  return { kind: 'learned', learned, leftOut };
}

interface SelectionContext {
  readonly context: StateContext;
  readonly known: ReadonlySet<string>;
  readonly isOld: boolean;
  readonly isSameHash: boolean;
}

function selectKnown(
  { limits, holds }: StateDocument,
  { context, known, isOld, isSameHash }: SelectionContext,
): LearnedState {
  const at = (time: string): Millis => context.now + Date.parse(time) - context.wallClock;
  /** Undefined if the time has passed. */
  const until = (time: string | undefined): Millis | undefined => {
    const end = time === undefined ? context.now : at(time);
    return end > context.now ? end : undefined;
  };
  return {
    limits: limits
      .filter((limit) => known.has(limit.upstream) && (!usesClientHash(limit) || isSameHash))
      .map(({ upstream, nested, scope, key, rate, ceiling, places, blockedUntil, quotaOf, block, unit }) => {
        // The quota of a client whose hash has changed is dropped: its next response sets it again.
        const isKnown = block === undefined || isSameHash || coversAllRequests(block);
        const isStop = isKnown && (quotaOf === undefined || isSameHash || isOfAllClients(quotaOf));
        // `blockedUntil` of a dropped block was the time of its next probe.
        const end = isStop ? until(blockedUntil) : undefined;
        const { credential, client, isCommon = false, isSpent = false } = quotaOf ?? {};
        const isDropped = isOld || unit !== context.unitOf(upstream, nested);
        return {
          ref: { upstream, nested, scope, key },
          rate: isDropped ? undefined : rate,
          ceiling: isDropped ? undefined : ceiling,
          concurrencyLimit: isDropped ? undefined : places,
          blockedUntil: end,
          block: block !== undefined && isKnown ? decodeBlock(block, at, context.now) : undefined,
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

/** Whether a quota is that of all clients without a credential, which means the same in every process. */
function isOfAllClients({ credential, isCommon }: QuotaOwnerDocument): boolean {
  return (credential === undefined || credential === 0) && isCommon;
}

/** Whether a block covers all requests: other scopes are hashes. */
function coversAllRequests({ scope }: BlockDocument): boolean {
  return scope.every((number) => number === 0);
}

function encodeBlock(block: BlockStatus, when: (time: Millis) => string): BlockDocument {
  const { cause, scope, since, isPartial, probeAt, heldClient, heldClientUntil } = block;
  const until = Number.isFinite(heldClientUntil) ? when(heldClientUntil) : undefined;
  return {
    cause,
    scope: [...scope],
    since: when(since),
    isPartial,
    probeAt: when(probeAt),
    asked: heldClient,
    askedUntil: until,
  };
}

function decodeBlock(block: BlockDocument, at: (time: string) => Millis, now: Millis): BlockStatus | undefined {
  const probeAt = at(block.probeAt);
  if (now - probeAt > BLOCK_MAX_AGE) return undefined;
  const askedUntil = block.askedUntil === undefined ? Number.NEGATIVE_INFINITY : at(block.askedUntil);
  const { cause, scope, isPartial, asked: heldClient } = block;
  const since = at(block.since);
  return { cause, scope, isPartial, since, probeAt, expectedAt: probeAt, heldClient, heldClientUntil: askedUntil };
}

function withoutUntil({ credential, client, isCommon, isSpent }: QuotaOwner): QuotaOwnerDocument {
  return { credential, client, isCommon, isSpent };
}

/** Whether a limit's key is a hash, which the next process may not know. */
function usesClientHash({ scope, key }: Pick<LearnedLimit['ref'], 'scope' | 'key'>): boolean {
  return scope !== 'upstream' || key.includes('#');
}

function parse(text: string): StateDocument | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'its content is invalid';
  }
  const parsed = StateDocumentSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const isOther = typeof value === 'object' && value !== null && 'version' in value && value.version !== VERSION;
  return isOther ? 'it was written by a version of Tidegate with another format' : 'its content is invalid';
}
