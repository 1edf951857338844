// The cost of explanations: runs exchange, driver and gate for a request that is admitted at once and answered with 200, with
// and without an observer; and the cost of a stored explanation.
//
//   npm run bench:explanations -- [--smoke]

import { execFile } from 'node:child_process';
import { parseArgs, promisify } from 'node:util';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { ExchangeEffects } from '../../src/core/exchange/effects.ts';
import { ExchangeDriver } from '../../src/core/exchange/exchange-driver.ts';
import { exchange } from '../../src/core/exchange/exchange.ts';
import { ExplanationRecorder } from '../../src/telemetry/explanations/explanation-recorder.ts';
import { SpanObserver } from '../../src/telemetry/tracing/span-observer.ts';
import type { RequestRecord } from '../../src/core/events/request-record.ts';
import { Gate } from '../../src/core/admission/gate.ts';
import { Ticket } from '../../src/core/admission/ticket.ts';
import type { ExchangeVerdict } from '../../src/core/exchange/exchange-verdict.ts';
import { NO_HINTS } from '../../src/core/hints/hints.ts';
import type {
  ExchangeDescription,
  LastAttempt,
  TraceStep,
  TraceContext,
  ObservedExchange,
  ExchangeObserver,
} from '../../src/core/exchange/exchange-observer.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { routePolicy, requestFacts, SHARED, upstreamSettings } from '../support/core/policy-builders.ts';

const { smoke, only } = parseArgs({
  options: { smoke: { type: 'boolean', default: false }, only: { type: 'string' } },
}).values;
const [PROCESSES, ROUNDS, REQUESTS] = smoke ? [1, 2, 1000] : [5, 10, 100_000];

const PLAN = routePolicy();
const FACTS = requestFacts();
const clock = { now: (): number => now };
let now = 0;

/** An upstream that responds synchronously and never fails. */
class Immediate implements ExchangeEffects, ObservedExchange {
  steps: TraceStep[] | undefined;
  trace: TraceContext | undefined;
  readonly drive: ExchangeDriver<Immediate>;
  readonly #number: number;
  readonly #status: number;

  constructor(gate: Gate, watcher: ExchangeObserver | undefined, number: number, status: number) {
    this.#number = number;
    this.#status = status;
    const ticket = new Ticket('up', 'client', 1, [SHARED], (admission, at) => this.drive.onAdmission(admission, at));
    const script = exchange(FACTS, PLAN, () => 0.5, now);
    this.drive = new ExchangeDriver<Immediate>({
      generator: script,
      gate,
      ticket,
      effects: this,
      clock,
      listen: ignore,
      observer: watcher,
    });
  }

  readBody(): void {
    this.drive.onBodyRead(true);
  }

  join(): void {}
  leave(): void {}
  claim(): void {
    this.drive.onClaimed(undefined);
  }

  stopClaim(): void {}

  lookUpKey(): void {
    this.drive.onKeyKnown(undefined);
  }

  send(): void {
    now += 0.02;
    this.drive.onOutcome({ kind: 'response', status: this.#status, hints: NO_HINTS, took: 0.02 });
  }

  finish(verdict: ExchangeVerdict): void {
    if (verdict.kind === 'forward') this.drive.onResponseEnd();
  }

  cancelSend(): boolean {
    return true;
  }

  discardResponse(): void {}
  sleep(): void {}
  cancelSleep(): void {}
  rearmGateTimer(): void {}

  describe(): ExchangeDescription {
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
        queueTime: 0,
        sleepTime: 0,
        timeToHead: 0.02,
        took: 0.02,
        retryAfterSeconds: undefined,
        isTruncated: false,
      },
    };
  }
}

/** @returns CPU nanoseconds per request */
function measure(watcher: ExchangeObserver | undefined, status: number): number {
  const store = new MemoryStore({ upstreams: [upstreamSettings()], maxTracked: 10, random: () => 0.5, listen: ignore });
  const gate = new Gate(store, ignore);
  const since = process.threadCpuUsage();
  for (let i = 0; i < REQUESTS; i += 1) {
    now += 0.02;
    const request = new Immediate(gate, watcher, i, status);
    request.drive.start();
    const record = request.record();
    watcher?.onEnd(request, record);
  }
  const { user, system } = process.threadCpuUsage(since);
  return (1000 * (user + system)) / REQUESTS;
}

function ignore(): void {}

const CASES: Readonly<Record<string, readonly [watcher: 'none' | 'explanations' | 'spans', status: number]>> = {
  'passed, 200, nobody watches': ['none', 200],
  'passed, 200, five a second kept': ['explanations', 200],
  'passed, 404, nobody watches': ['none', 404],
  'passed, 404, every explanation kept': ['explanations', 404],
  'passed, 200, traced': ['spans', 200],
};

if (only === undefined) await compare();
else run(only);

/** Runs each case in its own processes, because V8 optimises for observed types; in turn, so that other load affects all alike. */
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

/** Reports the fastest round, because other load can only slow it down. */
function run(name: string): void {
  const [kind, status] = CASES[name] ?? ['none', 200];
  const watcher =
    kind === 'none'
      ? undefined
      : kind === 'explanations'
        ? new ExplanationRecorder({ wallClock: () => Date.now() })
        : makeSpans();
  const costs = Array.from({ length: ROUNDS }, () => measure(watcher, status));
  console.log(Math.min(...costs));
}

/** Creates and batches spans as for export, without sending them. */
function makeSpans(): ExchangeObserver {
  const exporter = {
    export: (_: unknown, done: (result: { code: number }) => void) => done({ code: 0 }),
    shutdown: () => Promise.resolve(),
  };
  const provider = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] });
  return new SpanObserver(provider.getTracer('bench'));
}
