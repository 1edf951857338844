// What it costs to be able to explain a request: the script, the drive and the gate of one that passes at once and is answered with
// 200, with and without somebody who watches it; and what a story costs that is kept.
//
//   npm run bench:story -- [--smoke]

import { execFile } from 'node:child_process';
import { parseArgs, promisify } from 'node:util';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Effects } from '../../src/core/exchange/effects.ts';
import { Drive } from '../../src/core/exchange/exchange-driver.ts';
import { exchange } from '../../src/core/exchange/exchange.ts';
import { Stories } from '../../src/telemetry/explanations/explanation-recorder.ts';
import { SpanWatcher } from '../../src/telemetry/tracing/span-observer.ts';
import type { RequestRecord } from '../../src/core/events/proxy-events.ts';
import { Gate } from '../../src/core/admission/gate.ts';
import { Ticket } from '../../src/core/admission/ticket.ts';
import type { Verdict } from '../../src/core/exchange/attempt-outcome.ts';
import { NO_HINTS } from '../../src/core/exchange/attempt-outcome.ts';
import type {
  Description,
  LastAttempt,
  Step,
  Trace,
  Watched,
  Watcher,
} from '../../src/core/exchange/exchange-observer.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { planOf, requestFacts, SHARED, upstreamSettings } from '../support/policy.ts';

const { smoke, only } = parseArgs({
  options: { smoke: { type: 'boolean', default: false }, only: { type: 'string' } },
}).values;
const [PROCESSES, ROUNDS, REQUESTS] = smoke ? [1, 2, 1000] : [5, 10, 100_000];

const PLAN = planOf();
const FACTS = requestFacts();
const clock = { now: (): number => now };
let now = 0;

/** An upstream that answers within the call, and never wrong. */
class Immediate implements Effects, Watched {
  steps: Step[] | undefined;
  trace: Trace | undefined;
  readonly drive: Drive<Immediate>;
  readonly #number: number;
  readonly #status: number;

  constructor(gate: Gate, watcher: Watcher | undefined, number: number, status: number) {
    this.#number = number;
    this.#status = status;
    const ticket = new Ticket('up', 'client', 1, [SHARED], (admission, at) => this.drive.settle(admission, at));
    const script = exchange(FACTS, PLAN, () => 0.5, now);
    this.drive = new Drive<Immediate>({ script, gate, ticket, effects: this, clock, listen: ignore, watcher });
  }

  readBody(): void {
    this.drive.bodyRead(true);
  }

  claim(): void {
    this.drive.claimed(undefined);
  }

  cancelClaim(): boolean {
    return false;
  }

  lookUp(): undefined {}

  send(): void {
    now += 0.02;
    this.drive.settled({ kind: 'response', status: this.#status, hints: NO_HINTS, took: 0.02 });
  }

  finish(verdict: Verdict): void {
    if (verdict.kind === 'forward') this.drive.ended();
  }

  cancelSend(): boolean {
    return true;
  }

  discard(): void {}
  sleep(): void {}
  cancelSleep(): void {}
  rearm(): void {}

  describe(): Description {
    return {
      ...{ id: `bench-${this.#number.toString(36)}`, method: 'GET', path: '/v1/charges', route: '/', routePath: '/' },
      ...{ upstream: 'up', client: '0123456789abcdef', identifiedBy: 'ip', scheme: 'http', version: '1.1' },
      ...{ traceparent: undefined, tracestate: undefined, retryPolicy: PLAN.retry },
    };
  }

  lastAttempt(): LastAttempt {
    const { outcome } = this.drive;
    return { endpoint: 'api.example.com', origin: 'https://api.example.com', outcome, cause: undefined };
  }

  record(): RequestRecord {
    return {
      ...{ id: `bench-${this.#number.toString(36)}`, at: now - 0.02, route: '/', upstream: 'up', method: 'GET' },
      ...{ path: '/v1/charges', client: '0123456789abcdef', status: this.#status, outcome: 'forwarded' },
      ...{
        reason: undefined,
        attempts: 1,
        queued: 0,
        slept: 0,
        toHead: 0.02,
        took: 0.02,
        retryAfter: undefined,
        cut: false,
      },
    };
  }
}

/** @returns nanoseconds of the thread for each request */
function measure(watcher: Watcher | undefined, status: number): number {
  const store = new MemoryStore({ upstreams: [upstreamSettings()], maxTracked: 10, random: () => 0.5, listen: ignore });
  const gate = new Gate(store, ignore);
  const since = process.threadCpuUsage();
  for (let i = 0; i < REQUESTS; i += 1) {
    now += 0.02;
    const request = new Immediate(gate, watcher, i, status);
    request.drive.start();
    const record = request.record();
    watcher?.over(request, record);
  }
  const { user, system } = process.threadCpuUsage(since);
  return (1000 * (user + system)) / REQUESTS;
}

function ignore(): void {}

const CASES: Readonly<Record<string, readonly [watcher: 'nobody' | 'stories' | 'spans', status: number]>> = {
  'passed, 200, nobody watches': ['nobody', 200],
  'passed, 200, five a second kept': ['stories', 200],
  'passed, 404, nobody watches': ['nobody', 404],
  'passed, 404, every story kept': ['stories', 404],
  'passed, 200, traced': ['spans', 200],
};

if (only === undefined) await compare();
else run(only);

/** Each in processes of its own, for the compiler knows what it has seen; in turn, so that what the machine does besides hits all alike. */
async function compare(): Promise<void> {
  const figures = new Map<string, number[]>(Object.keys(CASES).map((name) => [name, []]));
  for (let i = 0; i < PROCESSES; i += 1) {
    for (const [name, costs] of figures) {
      const args = [import.meta.filename, '--only', name, ...(smoke ? ['--smoke'] : [])];
      const { stdout } = await promisify(execFile)(process.execPath, args);
      costs.push(Number(stdout));
    }
  }
  for (const [name, costs] of figures) {
    const sorted = costs.toSorted((a, b) => a - b).map((cost) => cost.toFixed(0));
    console.log(`${name.padEnd(34)} ${sorted.join(' ')} ns`);
  }
}

/** The fastest round: others on the machine can only slow it down. */
function run(name: string): void {
  const [kind, status] = CASES[name] ?? ['nobody', 200];
  const watcher =
    kind === 'nobody' ? undefined : kind === 'stories' ? new Stories({ wallClock: () => Date.now() }) : makeSpans();
  const costs = Array.from({ length: ROUNDS }, () => measure(watcher, status));
  console.log(Math.min(...costs));
}

/** Spans are made and gathered as they are where they are sent; nobody is sent them. */
function makeSpans(): Watcher {
  const exporter = {
    export: (_: unknown, done: (result: { code: number }) => void) => done({ code: 0 }),
    shutdown: () => Promise.resolve(),
  };
  const provider = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] });
  return new SpanWatcher(provider.getTracer('bench'));
}
