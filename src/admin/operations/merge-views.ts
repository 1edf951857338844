/** Merges the views of several processes into one. */
import type { Millis } from '../../core/scalars.ts';
import type { RequestCounts } from '../../telemetry/metrics/request-counts.ts';
import { sumRequestCounts } from '../../telemetry/metrics/request-counts.ts';
import type { EndpointFailure, EndpointView } from '../../core/events/gate-views.ts';
import { isViewMoreCritical } from './limit-group-summary.ts';
import type {
  ClientView,
  ProcessView,
  NestedLimitView,
  RefusalsView,
  RefusedClientView,
  UpstreamProcessView,
} from './process-api.ts';

/** Sums of counters that never fall, although processes end and start. */
export class MergedCounts {
  readonly #last = new Map<number, RequestCounts>();
  #ofExited: RequestCounts = sumRequestCounts([]);

  /** Returns the sum. A process that has not responded counts with its last values. */
  add(views: ReadonlyMap<number, ProcessView>): RequestCounts {
    for (const [process, { counts }] of views) this.#last.set(process, counts);
    return sumRequestCounts([this.#ofExited, ...this.#last.values()]);
  }

  /** To be called when a process has ended; none of its requests is in flight any more. */
  removeProcess(process: number): void {
    const last = this.#last.get(process);
    this.#last.delete(process);
    if (last !== undefined) this.#ofExited = sumRequestCounts([this.#ofExited, { ...last, inFlight: 0 }]);
  }
}

/** Process 0 is authoritative for the limit of an upstream, if it keeps that limit. */
export function mergeUpstreams(views: ReadonlyMap<number, ProcessView>): UpstreamProcessView[] {
  const merged = new Map<string, UpstreamProcessView>();
  for (const [process, { upstreams }] of [...views].toSorted(([a], [b]) => b - a)) {
    for (const each of upstreams) {
      const known = merged.get(each.name);
      merged.set(each.name, known === undefined ? each : combineUpstreams(known, each, process === 0));
    }
  }
  const order = [...views.values()].flatMap(({ upstreams }) => upstreams.map(({ name }) => name));
  return [...merged.values()].toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
}

function combineUpstreams(a: UpstreamProcessView, b: UpstreamProcessView, keepsLimits: boolean): UpstreamProcessView {
  return {
    ...combineLimits(a, b, keepsLimits),
    budget: Math.min(a.budget, b.budget),
    isBudgetSpent: a.isBudgetSpent || b.isBudgetSpent,
    lastFailure: newestFailure(a.lastFailure, b.lastFailure),
    refusals: combineRefusals(a.refusals, b.refusals),
    nested: combineNested(a, b, keepsLimits),
    quotas: [b.quotas, a.quotas].find((each) => each !== undefined && each.length > 0),
    accounts: combineAccounts(a.accounts, b.accounts),
  };
}

/** In the order of `a`, as nested limits. Each process has its own requests in flight, and may have a quarantine that others do not know yet. */
function combineAccounts(
  a: UpstreamProcessView['accounts'],
  b: UpstreamProcessView['accounts'],
): UpstreamProcessView['accounts'] {
  if (a === undefined || b === undefined) return a ?? b;
  const others = new Map(b.map((each) => [each.account, each]));
  const combined = a.map((each) => {
    const other = others.get(each.account);
    others.delete(each.account);
    if (other === undefined) return each;
    const first = (a: Millis | undefined, b: Millis | undefined): Millis => Math.min(a ?? Infinity, b ?? Infinity);
    const [since, probeAt] = [first(each.since, other.since), first(each.probeAt, other.probeAt)];
    const isCommonlyRejected = each.isCommonlyRejected === true || other.isCommonlyRejected === true;
    return {
      ...each,
      isQuarantined: each.isQuarantined || other.isQuarantined,
      ...(since === Infinity ? {} : { since, isCommonlyRejected }),
      ...(probeAt === Infinity ? {} : { probeAt }),
      inFlight: each.inFlight + other.inFlight,
      rate: Math.min(each.rate, other.rate),
    };
  });
  return [...combined, ...others.values()];
}

function newestFailure(a: EndpointFailure | undefined, b: EndpointFailure | undefined): EndpointFailure | undefined {
  return a === undefined || (b !== undefined && b.at > a.at) ? b : a;
}

function combineRefusals(a: RefusalsView, b: RefusalsView): RefusalsView {
  const clients = new Map(a.clients.map((each) => [each.key, each]));
  for (const each of b.clients) {
    const known = clients.get(each.key);
    clients.set(each.key, known === undefined ? each : combineRefusedClients(known, each));
  }
  return { total: a.total + b.total, clients: [...clients.values()] };
}

function combineRefusedClients(a: RefusedClientView, b: RefusedClientView): RefusedClientView {
  return {
    key: a.key,
    name: a.name ?? b.name,
    count: a.count + b.count,
    demand: a.demand + b.demand,
    share: a.share ?? b.share,
    heldUntil: Math.max(a.heldUntil, b.heldUntil),
  };
}

/** In the order of `a`. During a reload, not every process may know a new limit. */
function combineNested(
  a: UpstreamProcessView,
  b: UpstreamProcessView,
  keepsLimits: boolean,
): readonly NestedLimitView[] {
  const others = new Map(b.nested.map((each) => [each.name, each]));
  const combined = a.nested.map((each) => {
    const other = others.get(each.name);
    others.delete(each.name);
    return other === undefined ? each : combineLimits(each, other, keepsLimits);
  });
  return [...combined, ...others.values()];
}

function combineLimits(a: NestedLimitView, b: NestedLimitView, keepsLimits: boolean): NestedLimitView {
  const isNearer =
    a.mostCritical === undefined ||
    (b.mostCritical !== undefined && isViewMoreCritical(b.mostCritical, a.mostCritical));
  return {
    name: a.name,
    scope: a.scope,
    limits: keepsLimits && b.limits > 0 ? b.limits : Math.max(a.limits, b.limits),
    mostCritical: (keepsLimits || isNearer) && b.mostCritical !== undefined ? b.mostCritical : a.mostCritical,
    queued: a.queued + b.queued,
    inFlight: a.inFlight + b.inFlight,
  };
}

export function mergeEndpoints(views: Iterable<ProcessView>): EndpointView[] {
  const merged = new Map<string, EndpointView>();
  for (const { endpoints } of views) {
    for (const each of endpoints) {
      const name = `${each.upstream}\0${each.endpoint}`;
      const other = merged.get(name);
      merged.set(name, other === undefined ? each : combineEndpoints(other, each));
    }
  }
  return [...merged.values()];
}

/** A failure that one process saw is over if another process got a response since. */
function combineEndpoints(a: EndpointView, b: EndpointView): EndpointView {
  const workedAt = Math.max(a.workedAt ?? Number.NEGATIVE_INFINITY, b.workedAt ?? Number.NEGATIVE_INFINITY);
  const last = (a.failure?.at ?? Number.NEGATIVE_INFINITY) > (b.failure?.at ?? Number.NEGATIVE_INFINITY) ? a : b;
  return {
    upstream: a.upstream,
    endpoint: a.endpoint,
    isHealthy: a.isHealthy && b.isHealthy,
    failure: last.failure !== undefined && last.failure.at >= workedAt ? last.failure : undefined,
    workedAt,
  };
}

/** The store of the group is degraded if one process does not reach it; the first of these says why. */
export function mergeStores(views: Iterable<ProcessView>): {
  readonly degraded: boolean;
  readonly problem: string | null;
} {
  const degraded = [...views].filter(({ isDegraded }) => isDegraded);
  const problem = degraded.find(({ storeProblem }) => storeProblem !== undefined)?.storeProblem;
  return { degraded: degraded.length > 0, problem: problem ?? null };
}

/** Merges the rows of one client in two processes. */
export function combineClients(a: ClientView, b: ClientView): ClientView {
  const worse = a.rank.group <= b.rank.group ? a : b;
  return {
    ...worse,
    name: a.name ?? b.name,
    allowance: Math.min(a.allowance, b.allowance),
    demand: a.demand + b.demand,
    queued: a.queued + b.queued,
    heldUntil: Math.max(a.heldUntil, b.heldUntil),
    nextSlot: Math.max(a.nextSlot, b.nextSlot),
    calmAt: Math.max(a.calmAt, b.calmAt),
    lastSeen: Math.max(a.lastSeen, b.lastSeen),
  };
}

/** Merges sorted lists up to `limit` rows; `read` has the last row taken from each list. */
export function mergePages<T>(
  pages: ReadonlyMap<number, readonly T[]>,
  isBefore: (a: T, b: T) => boolean,
  limit: number,
): { readonly rows: readonly T[]; readonly read: ReadonlyMap<number, T>; readonly isAll: boolean } {
  const positions = new Map([...pages.keys()].map((process) => [process, 0]));
  const read = new Map<number, T>();
  const rows: T[] = [];
  while (rows.length < limit) {
    let first: { readonly process: number; readonly row: T } | undefined;
    for (const [process, page] of pages) {
      const row = page[positions.get(process) ?? 0];
      if (row !== undefined && (first === undefined || isBefore(row, first.row))) first = { process, row };
    }
    if (first === undefined) break;
    rows.push(first.row);
    read.set(first.process, first.row);
    positions.set(first.process, (positions.get(first.process) ?? 0) + 1);
  }
  const isLast = [...pages].every(([process, page]) => page.length < limit && positions.get(process) === page.length);
  return { rows, read, isAll: isLast };
}
