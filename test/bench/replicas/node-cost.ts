import { setTimeout as sleep } from 'node:timers/promises';
import { readFile } from '../../../src/cli/read-file.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { formatMistakes } from '../../../src/config/mistakes.ts';
import { supplier } from '../../../src/membership.ts';
import { Gate } from '../../../src/policy/gate.ts';
import type { Admission } from '../../../src/policy/ticket.ts';
import { Ticket } from '../../../src/policy/ticket.ts';
import type { Clock, Millis, Outcome } from '../../../src/policy/types.ts';
import { NO_HINTS } from '../../../src/policy/types.ts';
import type { RedisState } from '../../../src/replicas.ts';
import { shareByRedis } from '../../../src/replicas.ts';
import { MemoryStore } from '../../../src/state/memory.ts';
import { WakeTimer } from '../../../src/wake-timer.ts';
import { REFS, settingsFor, UPSTREAM } from '../policy/crowd.ts';
import type { BenchRedis } from './redis.ts';

/** Requests a second of one replica, and a limit that is held to and has room for them. */
const RATE = 1000;
const LIMIT = 2000;
const CLIENTS = 100;
const SERVICE: Millis = 20;
const TICK: Millis = 5;
const WARMUP: Millis = 1000;
const PATIENCE: Millis = 10_000;
const ACCEPTED: Outcome = { kind: 'response', status: 200, hints: NO_HINTS, took: SERVICE };

/** Processor time of this process in microseconds a request, the kernel's aside and with it. */
export interface Cost {
  readonly user: number;
  readonly all: number;
}

/** Decisions, the timers that drive them, and calls. */
export interface NodeCost {
  readonly memory: Cost;
  readonly redis: Cost;
  /** Of those offered while Redis was used, the share that was served. */
  readonly served: number;
}

interface Driven {
  readonly cost: Cost;
  readonly served: number;
}

/** What sharing costs a replica: the same requests through a gate, with a limit of its own and with one borrowed of Redis, by turns. */
export async function measureNodeCost(redis: BenchRedis, seconds: number, rounds: number): Promise<NodeCost> {
  const memory: Driven[] = [];
  const shared: Driven[] = [];
  for (let round = 0; round < rounds; round += 1) {
    memory.push(await drive(undefined, 1000 * seconds));
    shared.push(await drive(stateOf(redis.url, `cost-${round}`), 1000 * seconds));
  }
  return {
    memory: medians(memory),
    redis: medians(shared),
    served: Math.min(...shared.map(({ served }) => served)),
  };
}

async function drive(state: RedisState | undefined, span: Millis): Promise<Driven> {
  const clock: Clock = { now: () => performance.now() };
  const parts = { clock, random: Math.random, listen: () => undefined };
  const shared = state && (await shareByRedis(state, parts));
  const store = new MemoryStore({ upstreams: [settingsFor(LIMIT)], maxTracked: 1000, ...parts, ...shared?.options });
  const gate = new Gate(store, parts.listen);
  const timer = new WakeTimer(gate, clock);
  shared?.wire({ store, supply: supplier(gate, timer) });
  const underway: { readonly ticket: Ticket; readonly answeredAt: Millis }[] = [];
  let offered = 0;
  let served = 0;

  const settle = (ticket: Ticket, admission: Admission, now: Millis): void => {
    if (admission.kind !== 'admitted') return gate.leave(ticket);
    gate.sent(ticket, now);
    underway.push({ ticket, answeredAt: now + SERVICE });
  };
  const arrive = (now: Millis): void => {
    offered += 1;
    const client = `client-${offered % CLIENTS}`;
    const ticket: Ticket = new Ticket(UPSTREAM, client, 1, REFS, (admission, at) => settle(ticket, admission, at));
    const admission = gate.arrive(ticket, now + PATIENCE, now);
    if (admission !== undefined) settle(ticket, admission, now);
  };
  const answer = (now: Millis): void => {
    for (let first = underway[0]; first !== undefined && first.answeredAt <= now; first = underway[0]) {
      underway.shift();
      gate.head(first.ticket, ACCEPTED, now);
      gate.end(first.ticket, now);
      gate.leave(first.ticket);
      served += 1;
    }
  };
  const driveFor = async (time: Millis): Promise<void> => {
    const from = clock.now();
    let due = 0;
    for (let now = from; now < from + time; now = clock.now()) {
      answer(now);
      for (; due < ((now - from) * RATE) / 1000; due += 1) arrive(now);
      timer.rearm();
      await sleep(TICK);
    }
  };

  await driveFor(WARMUP);
  offered = 0;
  served = 0;
  const before = process.cpuUsage();
  await driveFor(span);
  const { user, system } = process.cpuUsage(before);
  timer.stop();
  shared?.close();
  return { cost: { user: user / offered, all: (user + system) / offered }, served: served / offered };
}

function stateOf(url: string, prefix: string): RedisState {
  const text = `upstreams: {a: {url: "http://a"}}\nsecret: of no use to anybody\nstate: {store: redis, url: "${url}", prefix: ${prefix}}\n`;
  const loaded = loadConfig(text, 'tidegate.yaml', { env: {}, readFile });
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  const { state } = loaded.config;
  if (state.store !== 'redis') throw new Error('the configuration names a Redis');
  return state;
}

function medians(runs: readonly Driven[]): Cost {
  return { user: median(runs.map(({ cost }) => cost.user)), all: median(runs.map(({ cost }) => cost.all)) };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
