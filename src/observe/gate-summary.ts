import type { GateView, LimitState, LimitView, Scope } from '../policy/events.ts';
import type { Millis } from '../policy/types.ts';

/** What the limits of one upstream come to, of whatever scope and however many. */
export interface UpstreamSummary {
  queued: number;
  /** An operator holds at least one limit at a rate; lets nothing pass. */
  isPinned: boolean;
  isStopped: boolean;
  /** States that at least one limit is in. */
  readonly states: Set<LimitState>;
  /** The latest; undefined when none is blocked. */
  blockedUntil: Millis | undefined;
  /** The least; undefined when the upstream tells no quota. */
  quotaLeft: number | undefined;
  /** By scope, the limit with the lowest rate: what the worst-off client or credential is allowed. */
  readonly tightest: Map<Scope, Pick<LimitView, 'rate' | 'ceiling' | 'places'>>;
}

/** One pass over the limits, as there may be one for each of 100 000 clients. `upstreams` are in the result even without a limit. */
export function summarizeGate(view: GateView, upstreams: Iterable<string>): ReadonlyMap<string, UpstreamSummary> {
  const summaries = new Map<string, UpstreamSummary>();
  for (const upstream of upstreams) summaries.set(upstream, emptySummary());
  for (const limit of view.limits) {
    let summary = summaries.get(limit.upstream);
    if (summary === undefined) {
      summary = emptySummary();
      summaries.set(limit.upstream, summary);
    }
    include(summary, limit);
  }
  return summaries;
}

function emptySummary(): UpstreamSummary {
  return {
    queued: 0,
    isPinned: false,
    isStopped: false,
    states: new Set(),
    blockedUntil: undefined,
    quotaLeft: undefined,
    tightest: new Map(),
  };
}

function include(summary: UpstreamSummary, limit: LimitView): void {
  summary.queued += limit.queued;
  summary.isPinned ||= limit.pinned !== undefined;
  summary.isStopped ||= limit.isStopped === true;
  summary.states.add(limit.state);
  if (limit.blockedUntil !== undefined) {
    summary.blockedUntil = Math.max(summary.blockedUntil ?? limit.blockedUntil, limit.blockedUntil);
  }
  if (limit.quotaLeft !== undefined) summary.quotaLeft = Math.min(summary.quotaLeft ?? 1, limit.quotaLeft);
  const tightest = summary.tightest.get(limit.scope);
  if (tightest === undefined || limit.rate < tightest.rate) summary.tightest.set(limit.scope, limit);
}
