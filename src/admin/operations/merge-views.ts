/** What several processes tell, as if one had told it. */
import type { Counts } from '../../telemetry/metrics/request-counts.ts';
import { addCounts } from '../../telemetry/metrics/request-counts.ts';
import type { ClientsView, EndpointView } from '../../core/events/proxy-events.ts';
import { isNearerView } from './limit-group-summary.ts';
import type { ClientLook, Look, NestedLook, UpstreamLook } from './process-api.ts';

/** Counters never fall, though processes end and others begin. */
export class CountsOfAll {
  readonly #last = new Map<number, Counts>();
  #past: Counts = addCounts([]);

  /** Returns the sum. Of a process that has not answered, what it said last. */
  note(looks: ReadonlyMap<number, Look>): Counts {
    for (const [station, { counts }] of looks) this.#last.set(station, counts);
    return addCounts([this.#past, ...this.#last.values()]);
  }

  /** Its requests have ended, one way or another. */
  gone(station: number): void {
    const last = this.#last.get(station);
    this.#last.delete(station);
    if (last !== undefined) this.#past = addCounts([this.#past, { ...last, inFlight: 0 }]);
  }
}

/** Of the limit of an upstream, who keeps it knows best: station 0, where it does. */
export function mergeUpstreams(looks: ReadonlyMap<number, Look>): UpstreamLook[] {
  const merged = new Map<string, UpstreamLook>();
  for (const [station, { upstreams }] of [...looks].toSorted(([a], [b]) => b - a)) {
    for (const each of upstreams) {
      const known = merged.get(each.name);
      merged.set(each.name, known === undefined ? each : combine(known, each, station === 0));
    }
  }
  const order = [...looks.values()].flatMap(({ upstreams }) => upstreams.map(({ name }) => name));
  return [...merged.values()].toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
}

function combine(a: UpstreamLook, b: UpstreamLook, isKeeper: boolean): UpstreamLook {
  return {
    ...combineLimits(a, b, isKeeper),
    budget: Math.min(a.budget, b.budget),
    nested: combineNested(a, b, isKeeper),
  };
}

/** In the order of the one that is told of first; one that a reload brings, not all may know yet. */
function combineNested(a: UpstreamLook, b: UpstreamLook, isKeeper: boolean): readonly NestedLook[] {
  const others = new Map(b.nested.map((each) => [each.name, each]));
  const combined = a.nested.map((each) => {
    const other = others.get(each.name);
    others.delete(each.name);
    return other === undefined ? each : combineLimits(each, other, isKeeper);
  });
  return [...combined, ...others.values()];
}

function combineLimits(a: NestedLook, b: NestedLook, isKeeper: boolean): NestedLook {
  const isNearer = a.nearest === undefined || (b.nearest !== undefined && isNearerView(b.nearest, a.nearest));
  return {
    name: a.name,
    scope: a.scope,
    limits: isKeeper && b.limits > 0 ? b.limits : Math.max(a.limits, b.limits),
    nearest: (isKeeper || isNearer) && b.nearest !== undefined ? b.nearest : a.nearest,
    queued: a.queued + b.queued,
    inFlight: a.inFlight + b.inFlight,
  };
}

export function mergeEndpoints(looks: Iterable<Look>): EndpointView[] {
  const merged = new Map<string, EndpointView>();
  for (const { endpoints } of looks) {
    for (const each of endpoints) {
      const name = `${each.upstream}\0${each.endpoint}`;
      const isHealthy = each.isHealthy && merged.get(name)?.isHealthy !== false;
      merged.set(name, { ...each, isHealthy });
    }
  }
  return [...merged.values()];
}

/** A client that has come to several processes is counted by each. */
export function mergeClients(looks: Iterable<Look>): ClientsView {
  let tracked = 0;
  let lost = 0;
  let min = 1;
  const byState = { normal: 0, held: 0, backoff: 0, cooldown: 0, restoring: 0 };
  for (const { clients } of looks) {
    tracked += clients.tracked;
    lost += clients.tracked * (1 - clients.allowance.mean);
    min = Math.min(min, clients.allowance.min);
    byState.normal += clients.byState.normal;
    byState.held += clients.byState.held;
    byState.backoff += clients.byState.backoff;
    byState.cooldown += clients.byState.cooldown;
    byState.restoring += clients.byState.restoring;
  }
  return { tracked, byState, allowance: { min, mean: tracked === 0 ? 1 : 1 - lost / tracked } };
}

/** One client, as two processes know it. */
export function combineClients(a: ClientLook, b: ClientLook): ClientLook {
  const worse = a.rank.group <= b.rank.group ? a : b;
  return {
    ...worse,
    allowance: Math.min(a.allowance, b.allowance),
    demand: a.demand + b.demand,
    queued: a.queued + b.queued,
    heldUntil: Math.max(a.heldUntil, b.heldUntil),
    nextSlot: Math.max(a.nextSlot, b.nextSlot),
    calmAt: Math.max(a.calmAt, b.calmAt),
    lastSeen: Math.max(a.lastSeen, b.lastSeen),
  };
}

/** Sorted lists as one, up to a number of rows, and how far each has been read. */
export function mergePages<T>(
  pages: ReadonlyMap<number, readonly T[]>,
  isBefore: (a: T, b: T) => boolean,
  most: number,
): { readonly rows: readonly T[]; readonly read: ReadonlyMap<number, T>; readonly isAll: boolean } {
  const places = new Map([...pages.keys()].map((station) => [station, 0]));
  const read = new Map<number, T>();
  const rows: T[] = [];
  while (rows.length < most) {
    let first: { readonly station: number; readonly row: T } | undefined;
    for (const [station, page] of pages) {
      const row = page[places.get(station) ?? 0];
      if (row !== undefined && (first === undefined || isBefore(row, first.row))) first = { station, row };
    }
    if (first === undefined) break;
    rows.push(first.row);
    read.set(first.station, first.row);
    places.set(first.station, (places.get(first.station) ?? 0) + 1);
  }
  const isAll = [...pages].every(([station, page]) => page.length < most && places.get(station) === page.length);
  return { rows, read, isAll };
}
