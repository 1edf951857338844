import type { PerformanceEntry } from 'node:perf_hooks';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { chooseClients } from './choose-clients.ts';
import { ClientPopulation, Names } from './client-population.ts';
import { collect } from './heap.ts';

export interface Pauses {
  readonly clients: number;
  readonly tracked: number;
  /** Durations of forced full collections in ms, sorted. */
  readonly full: readonly number[];
  /** The same without clients. */
  readonly bare: readonly number[];
  /** Durations of spontaneous collections in ms, while clients arrive and leave. */
  readonly own: Readonly<
    Record<'minor' | 'major' | 'incremental', { readonly count: number; readonly longest: number }>
  >;
  /** The longest decision while the table grew, in ms. */
  readonly growth: number;
}

const KINDS = {
  minor: constants.NODE_PERFORMANCE_GC_MINOR,
  major: constants.NODE_PERFORMANCE_GC_MAJOR,
  incremental: constants.NODE_PERFORMANCE_GC_INCREMENTAL,
};

/** Measures garbage collection pauses with this many tracked clients. */
export async function measurePauses(clients: number, requests: number, times: number): Promise<Pauses> {
  const names = new Names(clients);
  const bare = collections(times);

  const seen: { readonly kind: number; readonly duration: number }[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) seen.push({ kind: kindOf(entry), duration: entry.duration });
  });
  observer.observe({ entryTypes: ['gc'] });
  const crowd = new ClientPopulation(names, { clients, rate: undefined, gap: 0.02 });
  let growth = 0;
  for (let client = 0; client < clients; client += 1) {
    const ticket = crowd.ticketOf(client);
    const since = performance.now();
    crowd.decide(ticket);
    growth = Math.max(growth, performance.now() - since);
  }
  const choices = chooseClients('uniform', clients, 100_000);
  for (let made = 0; made < requests; made += choices.length) {
    for (const client of choices) crowd.decide(crowd.ticketOf(client));
    await sleep(1); // performance entries are delivered between turns of the event loop
  }
  await sleep(10);
  observer.disconnect();

  const own = (kind: number): { count: number; longest: number } => {
    const durations = seen.filter((entry) => entry.kind === kind).map(({ duration }) => duration);
    return { count: durations.length, longest: Math.max(0, ...durations) };
  };
  const { minor, major, incremental } = KINDS;
  return {
    clients,
    full: collections(times),
    tracked: crowd.tracked,
    bare,
    own: { minor: own(minor), major: own(major), incremental: own(incremental) },
    growth,
  };
}

function collections(times: number): number[] {
  collect(); // excludes earlier garbage
  const durations = Array.from({ length: times }, () => {
    const since = performance.now();
    collect();
    return performance.now() - since;
  });
  return durations.toSorted((a, b) => a - b);
}

function kindOf(entry: PerformanceEntry): number {
  const detail: unknown = 'detail' in entry ? entry.detail : undefined;
  return typeof detail === 'object' && detail !== null && 'kind' in detail ? Number(detail.kind) : 0;
}
