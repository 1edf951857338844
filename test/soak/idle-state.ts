import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis } from '../../src/core/scalars.ts';
import type { HeldResources } from '../support/proxy/memory-probe.ts';
import type { ProbedProcess } from '../support/proxy/probed-process.ts';
import type { Relay } from '../support/relay/relay.ts';

const IDLE_TIMEOUT: Millis = 20_000;
/** Allowed growth between the two idle states: of counts, and of memory in a long and in a short run. */
const ALLOWED = { count: 1.1, long: 1.1, short: 1.03 } as const;

/** The resources of the proxy without requests and connections. */
export interface IdleState {
  readonly held: HeldResources;
  readonly metrics: ReadonlyMap<string, number>;
  /** Resources that were not released. */
  readonly faults: readonly string[];
}

const OPEN = ['tidegate_requests_in_flight', 'tidegate_queue_depth', 'tidegate_replay_buffer_bytes'];

/** Resolves when the proxy is idle, or after a timeout. */
export async function waitUntilIdle(
  gate: ProbedProcess,
  relays: readonly Relay[],
  idle: HeldResources,
): Promise<IdleState> {
  const until = performance.now() + IDLE_TIMEOUT;
  for (;;) {
    const metrics = await gate.metrics();
    const open = [...metrics].filter(([name, value]) => value !== 0 && OPEN.some((each) => name.startsWith(each)));
    const faults = open.map(([name, value]) => `idle: ${name} is ${value}`);
    if (open.length === 0) for (const relay of relays) relay.break('cut'); // closes kept-alive connections
    const held = await gate.heldResources();
    for (const [kind, count] of Object.entries(held.handles)) {
      const least = idle.handles[kind] ?? 0;
      if (count > least) faults.push(`idle: ${count} × ${kind} open, ${least} before the load`);
    }
    if (held.files > idle.files) {
      faults.push(`idle: ${held.files} files open, ${idle.files} before the load`);
    }
    if (faults.length === 0 || performance.now() > until) return { held, metrics, faults };
    await sleep(50);
  }
}

/**
 * The resources that grew between two idle states. Minutes apart, a tenth is allowed. In a short run the first is so early, and
 * requests are so few, that a tenth would hide a kilobyte a request: there it is 3 %, for tables that have grown once.
 * Explanations of requests are not a leak: they are bounded.
 */
export function findLeaks(first: IdleState, last: IdleState, run: 'long' | 'short'): string[] {
  const grown = (what: string, before: number, after: number, allowed: number): string[] =>
    after > allowed * before ? [`${what} grew from ${before} to ${after}`] : [];
  const count = ({ handles }: HeldResources): number => Object.values(handles).reduce((sum, each) => sum + each, 0);
  return [
    ...grown('memory', bytesOf(first), bytesOf(last), ALLOWED[run]),
    ...grown('the number of handles', count(first.held), count(last.held), ALLOWED.count),
    ...grown('the number of open files', first.held.files, last.held.files, ALLOWED.count),
  ];
}

function bytesOf({ held, metrics }: IdleState): number {
  return held.bytes - (metrics.get('tidegate_story_bytes') ?? 0);
}
