import type { GateView, LimitState, LimitView, Scope } from '../../core/events/proxy-events.ts';
import type { BlockCause } from '../../core/rate/breaker/active-block.ts';
import { BLOCK_CAUSES } from '../../core/rate/breaker/active-block.ts';
import type { BlockedPart } from '../../core/rate/breaker/request-attributes.ts';
import { partOf } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/** What an upstream's own limits come to, or the nested ones of one name, of whatever scope and however many. */
export interface LimitSummary {
  readonly labels: { readonly upstream: string; readonly limit?: string };
  /** Of an upstream's own: at all of its limits. */
  queued: number;
  /** An operator holds at least one limit at a rate; lets nothing pass. */
  isPinned: boolean;
  isStopped: boolean;
  /** States that at least one limit is in. */
  readonly states: Set<LimitState>;
  /** How many limits block what, and why. */
  readonly blocks: Map<BlockCause, Map<BlockedPart, number>>;
  /** The latest; undefined when none is blocked. */
  blockedUntil: Millis | undefined;
  /** The least; undefined when the upstream tells no quota. */
  quotaLeft: number | undefined;
  /** By scope, the limit with the lowest rate: what the worst-off client or credential is allowed. */
  readonly tightest: Map<Scope, Pick<LimitView, 'rate' | 'ceiling' | 'places'>>;
}

/** One pass over the limits, as there may be one for each of 100 000 clients. `upstreams` are in the result even without a limit. */
export function summarizeGate(view: GateView, upstreams: Iterable<string>): readonly LimitSummary[] {
  const summaries = new Map<string, LimitSummary>();
  const summaryOf = (upstream: string, nested: string): LimitSummary => {
    const key = nested === '' ? upstream : `${upstream}\0${nested}`;
    const known = summaries.get(key);
    if (known !== undefined) return known;
    // To Prometheus no label and an empty one are the same.
    const made = emptySummary(nested === '' ? { upstream } : { upstream, limit: nested });
    summaries.set(key, made);
    return made;
  };
  for (const upstream of upstreams) summaryOf(upstream, '');
  for (const limit of view.limits) {
    include(summaryOf(limit.upstream, limit.nested), limit);
    if (limit.nested !== '') summaryOf(limit.upstream, '').queued += limit.queued;
  }
  return [...summaries.values()];
}

function emptySummary(labels: LimitSummary['labels']): LimitSummary {
  return {
    labels,
    queued: 0,
    isPinned: false,
    isStopped: false,
    states: new Set(),
    blocks: new Map(BLOCK_CAUSES.map((cause) => [cause, new Map([['upstream', 0]])])),
    blockedUntil: undefined,
    quotaLeft: undefined,
    tightest: new Map(),
  };
}

function include(summary: LimitSummary, limit: LimitView): void {
  summary.queued += limit.queued;
  summary.isPinned ||= limit.pinned !== undefined;
  summary.isStopped ||= limit.isStopped === true;
  summary.states.add(limit.state);
  if (limit.block !== undefined) {
    const part = partOf(limit.block.scope);
    const parts = summary.blocks.get(limit.block.cause);
    parts?.set(part, (parts.get(part) ?? 0) + 1);
  }
  if (limit.blockedUntil !== undefined) {
    summary.blockedUntil = Math.max(summary.blockedUntil ?? limit.blockedUntil, limit.blockedUntil);
  }
  if (limit.quotaLeft !== undefined) summary.quotaLeft = Math.min(summary.quotaLeft ?? 1, limit.quotaLeft);
  const tightest = summary.tightest.get(limit.scope);
  if (tightest === undefined || limit.rate < tightest.rate) summary.tightest.set(limit.scope, limit);
}
