import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { performance } from 'node:perf_hooks';
import { isDeepStrictEqual } from 'node:util';
import type { Millis, Random } from '../../core/scalars.ts';
import { limitOf, makeLimitModel, withLimit } from '../limit-models/limit-model-spec.ts';
import { seededRandom } from '../seeded-random.ts';
import { UpstreamModel } from '../upstream/upstream-model.ts';
import type { ResponsePlan } from './response-plan.ts';
import { handleAdminRequest } from './practice-admin.ts';
import type { PracticeResponse } from './practice-response.ts';
import { errorResponse, withContentLength } from './practice-response.ts';
import { AttemptCounter } from './attempt-counter.ts';
import { planResponse, injectChargeFault } from './plan-response.ts';
import { InterruptibleListener } from './interruptible-listener.ts';
import { ChargeLedger } from './charge-ledger.ts';
import type { ResponseOutcome } from './execute-plan.ts';
import { executePlan } from './execute-plan.ts';
import type { PracticeSpec } from './practice-spec.ts';
import { chargedObject, findRoute } from './practice-routes.ts';
import { parseScript, SCRIPT_GRAMMAR, ScriptError } from './response-script.ts';
import { runStation } from './practice-station.ts';
import type { PracticeCountKind, PracticeStats } from './practice-counters.ts';
import { PracticeCounters } from './practice-counters.ts';
import { WaitLog } from './wait-log.ts';

export interface PracticeOptions extends PracticeSpec {
  /** 127.0.0.1 when absent. */
  readonly host?: string;
  /** Any free port when absent. */
  readonly port?: number;
}

/** Starts an HTTP server with a hidden limit. Rejects if the port is taken or a number of the spec is out of range. */
export async function startPracticeServer({
  host = '127.0.0.1',
  port = 0,
  ...spec
}: PracticeOptions): Promise<PracticeServer> {
  const practice = new PracticeServer(spec, host, port);
  await practice.open();
  return practice;
}

/** The state that `reset` discards. */
interface PracticeRun {
  readonly startedAt: Millis;
  readonly ledger: ChargeLedger;
  readonly counters: PracticeCounters;
  readonly waits: WaitLog;
  readonly attempts: AttemptCounter;
  readonly random: Random;
}

/** A practice upstream: an HTTP server with a hidden limit, and a ledger that counts double charges. */
export class PracticeServer {
  readonly #server: Server;
  readonly #listener: InterruptibleListener;
  readonly #host: string;
  #spec: PracticeSpec;
  #upstream: UpstreamModel;
  #station: ReturnType<typeof runStation>;
  #run: PracticeRun;

  constructor(spec: PracticeSpec, host: string, port: number) {
    this.#spec = spec;
    this.#upstream = new UpstreamModel(spec);
    this.#run = makeRun(spec);
    this.#station = this.#runStation();
    this.#host = host;
    // Never closes an idle connection: that would race with the next request on it.
    this.#server = createServer({ keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0, noDelay: true });
    this.#server.on('request', (request, response) => this.#handle(request, response));
    this.#listener = new InterruptibleListener(this.#server, host, port, () => {
      const { open, until } = this.#upstream.listenState(this.#now());
      return { open, holdsForMs: until - this.#now() };
    });
  }

  async open(): Promise<void> {
    await this.#listener.open();
  }

  get port(): number {
    return this.#listener.port;
  }

  /** Without a slash at the end. */
  get url(): string {
    return `http://${this.#host.includes(':') ? `[${this.#host}]` : this.#host}:${this.port}`;
  }

  get ledger(): Pick<ChargeLedger, 'charges' | 'doubleCharges' | 'isCharged' | 'summary'> {
    return this.#run.ledger;
  }

  stats(): PracticeStats {
    const now = this.#now();
    return this.#run.counters.stats(now, this.#upstream.limit(now));
  }

  /** Of the last requests that a limit of `kind: workers` has worked on. */
  get waits(): Pick<WaitLog, 'list'> {
    return this.#run.waits;
  }

  /** The number of scripted requests with this `x-practice-id`. */
  attempts(id: string): number {
    return this.#run.attempts.get(id);
  }

  spec(): PracticeSpec {
    return this.#spec;
  }

  /**
   * Changes the fields of the patch, from now on. A limit whose number alone changes keeps its charges; steps
   * in the past are not applied.
   * @throws RangeError if a number is out of range; nothing has changed then
   */
  configure(patch: Partial<PracticeSpec>): void {
    const now = this.#now();
    const spec = { ...this.#spec, ...patch };
    const before = this.#upstream;
    const same =
      patch.limit === undefined || isDeepStrictEqual(withLimit(this.#spec.limit, 1), withLimit(patch.limit, 1));
    before.limit(now); // makes the steps that are due
    const upstream = new UpstreamModel(
      spec,
      same ? before.model : makeLimitModel(spec.limit),
      now,
      patch.limits === undefined ? before.nested : undefined,
    );
    if (same && patch.limit !== undefined) upstream.model.setLimit(limitOf(patch.limit), now);
    this.#upstream = upstream;
    this.#spec = spec;
    this.#station = this.#runStation();
    if (patch.seed !== undefined) this.#run = { ...this.#run, random: seededRandom(patch.seed) };
    this.#listener.update();
  }

  /** Resets counts, charges, attempts, random numbers and time, under the spec in force. */
  reset(): void {
    this.#upstream = new UpstreamModel(this.#spec);
    this.#run = makeRun(this.#spec);
    this.#station = this.#runStation();
    this.#listener.update();
  }

  /** Breaks all connections. Resolves when the port is free. */
  async close(): Promise<void> {
    await this.#listener.close();
  }

  #runStation(): ReturnType<typeof runStation> {
    const applySteps = (now: Millis): void => void this.#upstream.limit(now);
    return runStation(this.#upstream.model, this.#spec, this.#run, applySteps);
  }

  #now(): Millis {
    return performance.now() - this.#run.startedAt;
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const path = pathOf(request.url ?? '/');
    if (path.startsWith('/practice/')) {
      return handleAdminRequest(this, path, request, (answer) => sendResponse(response, answer));
    }
    const script = request.headers['x-practice-script'];
    if (script === undefined) return this.#serve(path, request, response);
    let plan: ResponsePlan | undefined;
    try {
      plan = this.#readScript(String(script), request.headers['x-practice-id']);
    } catch (error) {
      if (!(error instanceof ScriptError)) throw error;
      request.resume();
      const message = `x-practice-script: ${error.message}\n${SCRIPT_GRAMMAR}`;
      return sendResponse(response, errorResponse(400, 'invalid_request_error', message, 'script'));
    }
    if (plan === undefined) return this.#serve(path, request, response);
    this.#perform(plan, 'scripted', path, request, response, undefined);
  }

  /** @returns undefined if the limit decides */
  #readScript(script: string, id: string | string[] | undefined): ResponsePlan | undefined {
    const steps = parseScript(script);
    if (typeof id !== 'string' && steps.length > 1) throw new ScriptError('several steps need an x-practice-id');
    const attempt = typeof id === 'string' ? this.#run.attempts.increment(id) : 1;
    const step = steps[Math.min(attempt, steps.length) - 1] ?? steps[0];
    return step === 'pass' ? undefined : step;
  }

  #serve(path: string, request: IncomingMessage, response: ServerResponse): void {
    const upstream = this.#upstream;
    const { random } = this.#run;
    const { hints = 'none', afterCharge, reasonHeader } = this.#spec;
    const target = { method: request.method ?? 'GET', path };
    const decision = upstream.decide(this.#now(), random, target);
    let plan = planResponse(decision, hints, Date.now(), reasonHeader);
    if (afterCharge !== undefined && plan.runsHandler && chargedObject(request.method, path) !== undefined) {
      plan = injectChargeFault(plan, afterCharge, random);
    }
    const isAccepted = decision.kind === 'serve' || decision.kind === 'fail';
    // Without a station, the work takes its time whatever else is in flight.
    const work = isAccepted ? this.#station?.workOf(decision) : undefined;
    this.#perform(plan, COUNTED_AS[decision.kind], path, request, response, isAccepted ? upstream : undefined, work);
  }

  #perform(
    plan: ResponsePlan,
    kind: PracticeCountKind,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
    acquired: UpstreamModel | undefined,
    work?: (onDone: () => void) => void,
  ): void {
    const { counters, ledger } = this.#run;
    const client = request.headers['x-api-key'];
    counters.begin(typeof client === 'string' ? client : 'anonymous', kind);
    const onEnd = (how: ResponseOutcome): void => {
      counters.end(how);
      acquired?.release(this.#now(), { method: request.method ?? 'GET', path });
    };
    executePlan(plan, findRoute(request.method, path, ledger), request, response, onEnd, work);
  }
}

const COUNTED_AS = { serve: 'accepted', throttle: 'rejected', fail: 'errors', down: 'errors' } as const;

function makeRun({ seed = 1 }: PracticeSpec): PracticeRun {
  return {
    startedAt: performance.now(),
    ledger: new ChargeLedger(Date.now),
    counters: new PracticeCounters(),
    waits: new WaitLog(),
    attempts: new AttemptCounter(),
    random: seededRandom(seed),
  };
}

function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

function sendResponse(response: ServerResponse, { status, headers, body }: PracticeResponse): void {
  response.writeHead(status, withContentLength(status, headers, body.length));
  response.end(body);
}
