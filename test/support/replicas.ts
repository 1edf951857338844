/**
 * Several Tidegates that share limits through Redis, with twice the load that their upstream lets pass; and what may not
 * be harmed by whatever befalls that Redis.
 *
 *     const run = await startReplicas(['redis://127.0.0.1:6379', relayed]);
 *     const figures = await run.during(() => redis.restart());
 *     run.expectUnharmed(figures);
 */
import { expect, onTestFinished } from 'vitest';
import type { Practice } from '../../src/simulator/practice/practice-server.ts';
import type { Traffic } from '../../src/simulator/practice/traffic-generator.ts';
import { startTraffic } from '../../src/simulator/practice/traffic-generator.ts';
import { pause } from './pause.ts';
import type { Stalls } from './stalls.ts';
import { watchStalls } from './stalls.ts';
import type { Tidegate } from './tidegate.ts';
import { eventually, startTidegate, startUpstream } from './tidegate.ts';

/** Of the upstream, a second; nobody tells it. */
export const LIMIT = 100;
export const HIDDEN = { kind: 'token-bucket', rate: LIMIT, burst: 10 } as const;
/** What they are told to begin with. Who forgot what was learned would begin there again, and waste. */
const GUESS = 2 * LIMIT;
export const CLIENT_KEY = 'clients: {key: [header:x-api-key, ip]}\n';
const CLIENTS_EACH = 5;
/** Their limit is known when that much of it was used, and so little wasted, for so long. */
const SETTLED = { goodput: 0.93, waste: 0.05, for: 1500 };
const SETTLED_AFTER = 3500;
/** Goodput and waste count until so long after the fault. */
const AFTERWARDS = 1500;
const DEGRADED = 'tidegate_store_degraded{store="redis"}';
const LOST = 'the store does not answer: limits are kept by this process alone';
const BACK = 'the store answers: limits are shared again';
const OUTCOMES: ReadonlySet<string> = new Set(['forwarded', 'recovered', 'refused', 'queue_timeout']);
const GOAL = { goodput: 0.85, waste: 0.05 };
/** On a machine that has other work, until something has been told. */
const PATIENCE = 15_000;
/** Until the limit is known: two that go on alone waste 3 % on average, and twice that in one such time out of many. */
const SETTLED_WITHIN = 45_000;

export interface ReplicasOptions {
  /** Settings of all of them under `state`, in YAML's flow style: `timeout: 100ms`. */
  readonly state?: string;
  /** One of its own, with `LIMIT`, unless given. */
  readonly upstream?: Practice;
  /** Of the upstream, in YAML's flow style. */
  readonly rateLimit?: string;
  /** Requests a second of each client. */
  readonly rate?: number;
}

/** Of a time: of a fault's, from its beginning until a little after its end. */
export interface Figures {
  /** Accepted by the upstream ÷ what its limit let pass. */
  readonly goodput: number;
  /** Refused by the upstream ÷ accepted. */
  readonly waste: number;
}

export class Replicas {
  readonly stalls: Stalls;
  readonly gates: readonly Tidegate[];
  readonly upstream: Practice;
  readonly traffic: readonly Traffic[];

  constructor(gates: readonly Tidegate[], upstream: Practice, traffic: readonly Traffic[], stalls: Stalls) {
    this.stalls = stalls;
    this.gates = gates;
    this.upstream = upstream;
    this.traffic = traffic;
  }

  /** @param fault resolves when it is over */
  during(fault: () => unknown): Promise<Figures> {
    return figuresOf(this.upstream, async () => {
      await fault();
      await pause(AFTERWARDS);
    });
  }

  /** Resolves when those, or all, have said that they go on alone. */
  async degraded(gates = this.gates): Promise<void> {
    for (const gate of gates) {
      await eventually(
        () => gate.metric(DEGRADED),
        (value) => value === 1,
        PATIENCE,
      );
      await eventually(
        () => linesOf(gate, LOST),
        ({ length }) => length > 0,
        PATIENCE,
      );
    }
  }

  /** Resolves when all of them share again. */
  async rejoined(): Promise<void> {
    for (const gate of this.gates) {
      await eventually(
        () => gate.metric(DEGRADED),
        (value) => value === 0,
        PATIENCE,
      );
    }
  }

  /** What all of them together may send, as far as each knows. */
  rate(): number {
    return this.gates.reduce((sum, gate) => sum + (gate.view().limits[0]?.rate ?? 0), 0);
  }

  /** When each told first that Redis was gone, in milliseconds since 1970. */
  toldAt(): number[] {
    return this.gates.flatMap((gate) => linesOf(gate, LOST).slice(0, 1)).map(({ time }) => Date.parse(String(time)));
  }
}

/**
 * Resolves when the limit is known and all of them share it, or at once where there is nothing to share it by.
 * @param urls where each finds Redis
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
  onTestFinished(async () => void (await Promise.all(traffic.map((each) => each.stop(0)))));
  await eventually(
    () => upstream.stats().rejected,
    (rejected) => rejected > 0,
    PATIENCE,
  );
  await pause(SETTLED_AFTER - SETTLED.for);
  await settle(upstream, stalls);
  return new Replicas(gates, upstream, traffic, stalls);
}

/** What is learned by then may be a tenth too little: that is made good in time, and is no harm that a fault did. */
async function settle(upstream: Practice, stalls: Stalls): Promise<void> {
  const until = performance.now() + SETTLED_WITHIN;
  for (;;) {
    const figures = await figuresOf(upstream, () => pause(SETTLED.for));
    if (figures.goodput >= SETTLED.goodput && figures.waste <= SETTLED.waste) return;
    stalls.unlessStalled(() => {
      if (performance.now() > until) throw new Error(`the limit is not known yet: ${JSON.stringify(figures)}`);
    });
  }
}

/** From now until `meanwhile` resolves. */
async function figuresOf(upstream: Practice, meanwhile: () => Promise<unknown>): Promise<Figures> {
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

/** One more of them, to which nobody comes. */
export function startReplica(
  url: string,
  { url: upstream }: Pick<Practice, 'url'>,
  { state = '', rateLimit = '' }: ReplicasOptions = {},
): Promise<Tidegate> {
  return startTidegate(
    `${CLIENT_KEY}${stateAt(url, state)}upstreams: {api: {url: "${upstream}", rateLimit: {${rateLimit}}}}\n`,
  );
}

/** Each of those has told once that Redis was gone, and once that it was back; the others never. */
export function expectToldOnce(run: Replicas, gates = run.gates): void {
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

/** No request has failed, and the upstream's limit was used and kept. */
export function expectUnharmed(run: Replicas, { goodput, waste }: Figures): void {
  for (const each of run.traffic) {
    expect(Object.values(each.stats()).filter(({ failed }) => failed > 0)).toEqual([]);
  }
  for (const gate of run.gates) {
    // Beyond the limit they are turned away; that is no failure.
    expect(gate.requests().filter(({ outcome }) => !OUTCOMES.has(String(outcome)))).toEqual([]);
    expect(gate.log().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
  }
  if (process.env['TIDEGATE_FIGURES'] !== undefined) {
    process.stderr.write(
      `${expect.getState().currentTestName}: goodput ${goodput.toFixed(3)}, waste ${waste.toFixed(3)}\n`,
    );
  }
  run.stalls.unlessStalled(() => {
    expect(goodput).toBeGreaterThanOrEqual(GOAL.goodput);
    expect(waste).toBeLessThanOrEqual(GOAL.waste);
  });
}

/** In YAML. @param more other settings, in its flow style */
export function stateAt(url: string, more = ''): string {
  return `state: {store: redis, url: "${url}"${more === '' ? '' : `, ${more}`}}\n`;
}

function linesOf(gate: Tidegate, message: string): Record<string, unknown>[] {
  return gate.log().filter(({ msg }) => msg === message);
}
