import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import type { Held } from '../support/probe.ts';
import type { Probed } from '../support/probed.ts';
import type { Relay } from '../support/relay.ts';

const PATIENCE: Millis = 20_000;
/** Growth of what is counted, and of memory between the rests of a long run, and of a short one. */
const ALLOWED = { count: 1.1, long: 1.1, short: 1.03 } as const;

/** What the proxy holds when nobody asks, all has been answered, and nobody is connected. */
export interface Rest {
  readonly held: Held;
  readonly metrics: ReadonlyMap<string, number>;
  /** What did not come to rest. */
  readonly faults: readonly string[];
}

const OPEN = ['tidegate_requests_in_flight', 'tidegate_queue_depth', 'tidegate_replay_buffer_bytes'];

/** Resolves when all is at rest, or will not come to it. */
export async function comeToRest(gate: Probed, relays: readonly Relay[], idle: Held): Promise<Rest> {
  const until = performance.now() + PATIENCE;
  for (;;) {
    const metrics = await gate.metrics();
    const open = [...metrics].filter(([name, value]) => value !== 0 && OPEN.some((each) => name.startsWith(each)));
    const faults = open.map(([name, value]) => `at rest ${name} is ${value}`);
    if (open.length === 0) for (const relay of relays) relay.break('cut'); // connections that are kept for the next
    const held = await gate.held();
    for (const [kind, count] of Object.entries(held.handles)) {
      const least = idle.handles[kind] ?? 0;
      if (count > least) faults.push(`at rest ${count} × ${kind} are open, and ${least} before there was any load`);
    }
    if (held.files > idle.files) {
      faults.push(`at rest ${held.files} files are open, and ${idle.files} before there was any load`);
    }
    if (faults.length === 0 || performance.now() > until) return { held, metrics, faults };
    await sleep(50);
  }
}

/**
 * What has grown between two rests. Minutes apart, a tenth is allowed. In a short run the first rest comes so soon, and
 * requests are so few, that a tenth would hide a kilobyte a request: there it is 3 %, for tables that have grown once.
 * Stories of requests are no leak: there is a bound on them.
 */
export function findLeaks(first: Rest, last: Rest, run: 'long' | 'short'): string[] {
  const grown = (what: string, before: number, after: number, allowed: number): string[] =>
    after > allowed * before ? [`${what} grew from ${before} to ${after}`] : [];
  const count = ({ handles }: Held): number => Object.values(handles).reduce((sum, each) => sum + each, 0);
  return [
    ...grown('what is held of memory', bytesOf(first), bytesOf(last), ALLOWED[run]),
    ...grown('the number of handles', count(first.held), count(last.held), ALLOWED.count),
    ...grown('the number of open files', first.held.files, last.held.files, ALLOWED.count),
  ];
}

function bytesOf({ held, metrics }: Rest): number {
  return held.bytes - (metrics.get('tidegate_story_bytes') ?? 0);
}
