import type { GateView, LimitView } from '../../core/events/gate-views.ts';
import type { LimitState, LimitScope } from '../../core/limits/limit-state.ts';
import type { BlockCause } from '../../core/rate/breaker/active-block.ts';
import { BLOCK_CAUSES } from '../../core/rate/breaker/active-block.ts';
import type { BlockedPart } from '../../core/rate/breaker/request-attributes.ts';
import { classifyBlockedPart } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../core/scalars.ts';

/** A summary of the limits of an upstream, or of its nested limits of one name, of any scope and number. */
export interface LimitSummary {
  readonly labels: { readonly upstream: string; readonly limit?: string };
  /** In the summary of an upstream: requests queued at all of its limits, nested ones included. */
  queued: number;
  /** An operator pinned, or blocked, at least one limit. */
  isPinned: boolean;
  isOperatorBlocked: boolean;
  /** States that at least one limit is in. */
  readonly states: Set<LimitState>;
  /** The number of blocked limits by cause and part. */
  readonly blocks: Map<BlockCause, Map<BlockedPart, number>>;
  /** The latest; undefined when none is blocked. */
  blockedUntil: Millis | undefined;
  /** The lowest; undefined when the upstream reports no quota. */
  quotaLeft: number | undefined;
  /** By scope, the limit with the lowest rate: that of the most limited client or credential. */
  readonly lowestRate: Map<LimitScope, Pick<LimitView, 'rate' | 'ceiling' | 'concurrencyLimit'>>;
}

/** Summarises in one pass, because each of 100 000 clients may have a limit. `upstreams` have a summary even without a limit. */
export function summarizeLimits(view: GateView, upstreams: Iterable<string>): readonly LimitSummary[] {
  const summaries = new Map<string, LimitSummary>();
  const summaryOf = (upstream: string, nested: string): LimitSummary => {
    const key = nested === '' ? upstream : `${upstream}\0${nested}`;
    const known = summaries.get(key);
    if (known !== undefined) return known;
    // To Prometheus, an absent label and an empty one are the same.
    const made = emptySummary(nested === '' ? { upstream } : { upstream, limit: nested });
    summaries.set(key, made);
    return made;
  };
  for (const upstream of upstreams) summaryOf(upstream, '');
  for (const limit of view.limits) {
    addLimit(summaryOf(limit.upstream, limit.nested), limit);
    if (limit.nested !== '') summaryOf(limit.upstream, '').queued += limit.queued;
  }
  return [...summaries.values()];
}

function emptySummary(labels: LimitSummary['labels']): LimitSummary {
  return {
    labels,
    queued: 0,
    isPinned: false,
    isOperatorBlocked: false,
    states: new Set(),
    blocks: new Map(BLOCK_CAUSES.map((cause) => [cause, new Map([['upstream', 0]])])),
    blockedUntil: undefined,
    quotaLeft: undefined,
    lowestRate: new Map(),
  };
}

function addLimit(summary: LimitSummary, limit: LimitView): void {
  summary.queued += limit.queued;
  summary.isPinned ||= limit.pinnedRate !== undefined;
  summary.isOperatorBlocked ||= limit.isBlockedByOperator === true;
  summary.states.add(limit.state);
  if (limit.block !== undefined) {
    const part = classifyBlockedPart(limit.block.scope);
    const parts = summary.blocks.get(limit.block.cause);
    parts?.set(part, (parts.get(part) ?? 0) + 1);
  }
  if (limit.blockedUntil !== undefined) {
    summary.blockedUntil = Math.max(summary.blockedUntil ?? limit.blockedUntil, limit.blockedUntil);
  }
  if (limit.quotaLeft !== undefined) summary.quotaLeft = Math.min(summary.quotaLeft ?? 1, limit.quotaLeft);
  const tightest = summary.lowestRate.get(limit.scope);
  if (tightest === undefined || limit.rate < tightest.rate) summary.lowestRate.set(limit.scope, limit);
}
