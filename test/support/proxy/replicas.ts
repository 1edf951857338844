/**
 * Several Tidegates that share limits through Redis, loaded with twice their upstream's limit, and the checks that must
 * hold whatever fault Redis has.
 *
 *     const run = await startReplicas(['redis://127.0.0.1:6379', relayed]);
 *     const figures = await run.during(() => redis.restart());
 *     await expectUnharmed(run, figures);
 */
import { expect } from 'vitest';
import type { PracticeServer } from '../../../src/simulator/practice/practice-server.ts';
import type { TrafficGenerator } from '../../../src/simulator/practice/traffic-generator.ts';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import { atEnd } from '../at-end.ts';
import { pause } from '../pause.ts';
import type { Stalls } from '../stalls.ts';
import { watchStalls } from '../stalls.ts';
import type { Tidegate } from './tidegate.ts';
import { eventually, startTidegate, startUpstream } from './tidegate.ts';

/** The undisclosed limit of the upstream, requests a second. */
export const LIMIT = 100;
export const HIDDEN = { kind: 'token-bucket', rate: LIMIT, burst: 10 } as const;
/** The initial rate. A replica that forgot the learned rate would restart here and exceed the limit. */
const GUESS = 2 * LIMIT;
export const CLIENT_KEY = 'clients: {key: [header:x-api-key, ip]}\n';
const CLIENTS_EACH = 5;
/** The limit counts as learned after this goodput and waste for this many ms. */
const SETTLED = { goodput: 0.93, waste: 0.05, for: 1500 };
const SETTLED_AFTER = 3500;
/** Goodput and waste are measured until this many ms after the fault. */
const AFTERWARDS = 1500;
const DEGRADED = 'tidegate_store_degraded{store="redis"}';
const LOST = 'shared store not responding: this process keeps limits on its own';
const BACK = 'shared store responding again: limits are shared';
const OUTCOMES: ReadonlySet<string> = new Set(['forwarded', 'recovered', 'refused', 'queue_timeout']);
/** Required within `SETTLED_WITHIN` after a fault. Tests in virtual time require it during the fault as well. */
const GOAL = { goodput: 0.85, waste: 0.05, for: 1500 };
/** Required during the fault, in real time: only replicas that stop, or that use the whole limit each, miss it. */
const DURING = { goodput: 0.5, waste: 0.25 };
/** Timeout for log messages on a busy machine, in ms. */
const TIMEOUT = 15_000;
/** Milliseconds. A hundred scrapes a second take as much processor time as the traffic. */
export const SCRAPE_INTERVAL = 100;
/** Timeout for learning the limit, in ms. Two replicas acting alone waste 3 % on average, and rarely twice that. */
const SETTLED_WITHIN = 45_000;

export interface ReplicasOptions {
  /** Settings under `state` for all replicas, in YAML's flow style: `timeout: 100ms`. */
  readonly state?: string;
  /** By default a new one with `LIMIT`. */
  readonly upstream?: PracticeServer;
  /** Settings of the upstream's rate limit, in YAML's flow style. */
  readonly rateLimit?: string;
  /** Requests a second of each client. */
  readonly rate?: number;
}

/** Figures of an interval, such as from the beginning of a fault until shortly after its end. */
export interface ReplicaFigures {
  /** Accepted requests ÷ the upstream's limit. */
  readonly goodput: number;
  /** Rejected requests ÷ accepted requests. */
  readonly waste: number;
}

export class Replicas {
  readonly stalls: Stalls;
  readonly gates: readonly Tidegate[];
  readonly upstream: PracticeServer;
  readonly traffic: readonly TrafficGenerator[];

  constructor(
    gates: readonly Tidegate[],
    upstream: PracticeServer,
    traffic: readonly TrafficGenerator[],
    stalls: Stalls,
  ) {
    this.stalls = stalls;
    this.gates = gates;
    this.upstream = upstream;
    this.traffic = traffic;
  }

  /** @param fault resolves when the fault is over */
  during(fault: () => unknown): Promise<ReplicaFigures> {
    return figuresOf(this.upstream, async () => {
      await fault();
      await pause(AFTERWARDS);
    });
  }

  /** Resolves when these replicas, by default all, have logged that they act alone. */
  async degraded(gates = this.gates): Promise<void> {
    for (const gate of gates) {
      await eventually(
        () => linesOf(gate, LOST),
        ({ length }) => length > 0,
        TIMEOUT,
      );
      await eventually(
        () => gate.metric(DEGRADED),
        (value) => value === 1,
        TIMEOUT,
      );
    }
  }

  /** Resolves when all replicas share again. */
  async rejoined(): Promise<void> {
    for (const gate of this.gates) {
      await eventually(
        () => gate.metric(DEGRADED),
        (value) => value === 0,
        TIMEOUT,
        SCRAPE_INTERVAL,
      );
    }
  }

  /** Returns the total rate that the replicas allow themselves. */
  rate(): number {
    return this.gates.reduce((sum, gate) => sum + (gate.view().limits[0]?.rate ?? 0), 0);
  }

  /** Returns when each replica first logged the outage, in milliseconds since 1970. */
  outageLoggedAt(): number[] {
    return this.gates.flatMap((gate) => linesOf(gate, LOST).slice(0, 1)).map(({ time }) => Date.parse(String(time)));
  }
}

/**
 * Resolves when the limit is learned and shared by all, or at once if Redis is unavailable.
 * @param urls the Redis URL of each replica
 */
export async function startReplicas(
  urls: readonly string[],
  {
    state = '',
    upstream: given,
    rateLimit = `initialRate: ${GUESS}/s`,
    rate = (2 * LIMIT) / CLIENTS_EACH / urls.length,
  }: ReplicasOptions = {},
): Promise<Replicas> {
  const stalls = watchStalls();
  const upstream = given ?? (await startUpstream({ limit: HIDDEN, latency: { kind: 'constant', mean: 10 } }));
  const gates = await Promise.all(urls.map((url) => startReplica(url, upstream, { state, rateLimit })));
  const traffic = gates.map(({ url }, gate) => {
    const clients = Array.from({ length: CLIENTS_EACH }, (_, i) => ({ name: `client-${gate}-${i}`, rate }));
    return startTraffic({ target: url, clients, seed: gate + 1 });
  });
  atEnd(async () => void (await Promise.all(traffic.map((each) => each.stop(0)))));
  await eventually(
    () => upstream.stats().rejected,
    (rejected) => rejected > 0,
    TIMEOUT,
  );
  await pause(SETTLED_AFTER - SETTLED.for);
  await settle(upstream, stalls, SETTLED);
  return new Replicas(gates, upstream, traffic, stalls);
}

/** Resolves when the limit is used and kept as `goal` says. The learned rate may be a tenth too low at first; growth corrects it. */
async function settle(upstream: PracticeServer, stalls: Stalls, goal: typeof GOAL): Promise<void> {
  const until = performance.now() + SETTLED_WITHIN;
  for (;;) {
    const figures = await figuresOf(upstream, () => pause(goal.for));
    if (figures.goodput >= goal.goodput && figures.waste <= goal.waste) return;
    stalls.unlessStalled(() => {
      if (performance.now() > until) throw new Error(`the limit is not known yet: ${JSON.stringify(figures)}`);
    });
  }
}

/** Measures until `meanwhile` resolves. */
async function figuresOf(upstream: PracticeServer, meanwhile: () => Promise<unknown>): Promise<ReplicaFigures> {
  const before = upstream.stats();
  const since = performance.now();
  await meanwhile();
  const after = upstream.stats();
  const accepted = after.accepted - before.accepted;
  return {
    goodput: accepted / ((LIMIT * (performance.now() - since)) / 1000),
    waste: (after.rejected - before.rejected) / accepted,
  };
}

/** Starts another replica, without traffic. */
export function startReplica(
  url: string,
  { url: upstream }: Pick<PracticeServer, 'url'>,
  { state = '', rateLimit = '' }: ReplicasOptions = {},
): Promise<Tidegate> {
  return startTidegate(
    `${CLIENT_KEY}${stateAt(url, state)}upstreams: {api: {url: "${upstream}", rateLimit: {${rateLimit}}}}\n`,
  );
}

/** Expects that these replicas logged the outage once and its end once, and that the others logged neither. */
export function expectReportedOnce(run: Replicas, gates = run.gates): void {
  for (const gate of run.gates) {
    const lost = linesOf(gate, LOST);
    const back = linesOf(gate, BACK);
    expect(lost.filter(({ level }) => level !== 'warn')).toEqual([]);
    expect(back.filter(({ level }) => level !== 'info')).toEqual([]);
    const expected = gates.includes(gate) ? 1 : 0;
    run.stalls.unlessStalled(() => {
      expect(lost.map(({ cause }) => cause)).toHaveLength(expected);
      expect(back).toHaveLength(expected);
    });
  }
}

/** Expects that no request failed, that the upstream's limit was used during a fault, and that it is used and kept again. */
export async function expectUnharmed(run: Replicas, { goodput, waste }: ReplicaFigures): Promise<void> {
  for (const each of run.traffic) {
    expect(Object.values(each.stats()).filter(({ failed }) => failed > 0)).toEqual([]);
  }
  for (const gate of run.gates) {
    // A refusal beyond the limit is not a failure.
    expect(gate.requests().filter(({ outcome }) => !OUTCOMES.has(String(outcome)))).toEqual([]);
    expect(gate.log().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
  }
  if (process.env['TIDEGATE_FIGURES'] !== undefined) {
    process.stderr.write(
      `${expect.getState().currentTestName}: goodput ${goodput.toFixed(3)}, waste ${waste.toFixed(3)}\n`,
    );
  }
  run.stalls.unlessStalled(() => {
    expect(goodput).toBeGreaterThanOrEqual(DURING.goodput);
    expect(waste).toBeLessThanOrEqual(DURING.waste);
  });
  if (goodput < GOAL.goodput || waste > GOAL.waste) await settle(run.upstream, run.stalls, GOAL);
}

/** Returns the YAML of `state`. @param more other settings, in flow style */
export function stateAt(url: string, more = ''): string {
  return `state: {store: redis, url: "${url}"${more === '' ? '' : `, ${more}`}}\n`;
}

function linesOf(gate: Tidegate, message: string): Record<string, unknown>[] {
  return gate.log().filter(({ msg }) => msg === message);
}
