import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { performance } from 'node:perf_hooks';
import { isDeepStrictEqual } from 'node:util';
import type { Millis, Random } from '../../core/exchange/attempt-outcome.ts';
import { limitOf, makeModel, withLimit } from '../limit-models/limit-model-spec.ts';
import { seededRandom } from '../seeded-random.ts';
import { Upstream } from '../upstream/upstream-model.ts';
import type { Act } from './response-plan.ts';
import { administer } from './practice-admin.ts';
import type { Answer } from './practice-response.ts';
import { errorAnswer, framed } from './practice-response.ts';
import { Attempts } from './attempt-counter.ts';
import { chooseAct, spoilCharge } from './plan-response.ts';
import { Door } from './interruptible-listener.ts';
import { Ledger } from './charge-ledger.ts';
import { perform } from './execute-plan.ts';
import type { PracticeSpec } from './practice-spec.ts';
import { chargedObject, findRoute } from './practice-routes.ts';
import { parseScript, SCRIPT_GRAMMAR, ScriptError } from './response-script.ts';
import type { Kind, PracticeStats } from './practice-counters.ts';
import { Tally } from './practice-counters.ts';

export interface PracticeOptions extends PracticeSpec {
  /** 127.0.0.1 when absent. */
  readonly host?: string;
  /** Any free one when absent. */
  readonly port?: number;
}

/** Starts an HTTP server with a hidden limit. Rejects when the port is taken, or a number of the spec is out of range. */
export async function startPractice({ host = '127.0.0.1', port = 0, ...spec }: PracticeOptions): Promise<Practice> {
  const practice = new Practice(spec, host, port);
  await practice.open();
  return practice;
}

/** Everything that `reset` throws away. */
interface Run {
  readonly startedAt: Millis;
  readonly ledger: Ledger;
  readonly tally: Tally;
  readonly attempts: Attempts;
  readonly random: Random;
}

/** A practice upstream: a real server, a hidden limit, and a ledger that knows who was charged twice. */
export class Practice {
  readonly #server: Server;
  readonly #door: Door;
  readonly #host: string;
  #spec: PracticeSpec;
  #upstream: Upstream;
  #run: Run;

  constructor(spec: PracticeSpec, host: string, port: number) {
    this.#spec = spec;
    this.#upstream = new Upstream(spec);
    this.#run = startRun(spec);
    this.#host = host;
    // Never the one to close an idle connection: that would race with the next request on it.
    this.#server = createServer({ keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0, noDelay: true });
    this.#server.on('request', (request, response) => this.#handle(request, response));
    this.#door = new Door(this.#server, host, port, () => {
      const { open, until } = this.#upstream.door(this.#now());
      return { open, wait: until - this.#now() };
    });
  }

  async open(): Promise<void> {
    await this.#door.open();
  }

  get port(): number {
    return this.#door.port;
  }

  /** Without a slash at the end. */
  get url(): string {
    return `http://${this.#host.includes(':') ? `[${this.#host}]` : this.#host}:${this.port}`;
  }

  get ledger(): Pick<Ledger, 'charges' | 'doubleCharges' | 'isCharged' | 'summary'> {
    return this.#run.ledger;
  }

  stats(): PracticeStats {
    const now = this.#now();
    return this.#run.tally.stats(now, this.#upstream.limit(now));
  }

  /** How many scripted requests have come with this `x-practice-id`. */
  attempts(id: string): number {
    return this.#run.attempts.of(id);
  }

  spec(): PracticeSpec {
    return this.#spec;
  }

  /**
   * Changes what the patch names, from now on. A limit that changes in its number alone keeps what is charged to it; steps
   * in the past are not made.
   * @throws RangeError when a number is out of its range; nothing has changed then
   */
  configure(patch: Partial<PracticeSpec>): void {
    const now = this.#now();
    const spec = { ...this.#spec, ...patch };
    const before = this.#upstream;
    const same =
      patch.limit === undefined || isDeepStrictEqual(withLimit(this.#spec.limit, 1), withLimit(patch.limit, 1));
    before.limit(now); // makes the steps that are due
    const upstream = new Upstream(
      spec,
      same ? before.model : makeModel(spec.limit),
      now,
      patch.limits === undefined ? before.nested : undefined,
    );
    if (same && patch.limit !== undefined) upstream.model.retarget(limitOf(patch.limit), now);
    this.#upstream = upstream;
    this.#spec = spec;
    if (patch.seed !== undefined) this.#run = { ...this.#run, random: seededRandom(patch.seed) };
    this.#door.follow();
  }

  /** Counts, charges, attempts, chance and time from the start, under the spec in force. */
  reset(): void {
    this.#upstream = new Upstream(this.#spec);
    this.#run = startRun(this.#spec);
    this.#door.follow();
  }

  /** Breaks all connections. Resolves when the port is free. */
  async close(): Promise<void> {
    await this.#door.close();
  }

  #now(): Millis {
    return performance.now() - this.#run.startedAt;
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const path = pathOf(request.url ?? '/');
    if (path.startsWith('/practice/')) {
      return administer(this, path, request, (answer) => reply(response, answer));
    }
    const script = request.headers['x-practice-script'];
    if (script === undefined) return this.#serve(path, request, response);
    let act: Act | undefined;
    try {
      act = this.#readScript(String(script), request.headers['x-practice-id']);
    } catch (error) {
      if (!(error instanceof ScriptError)) throw error;
      request.resume();
      const message = `x-practice-script: ${error.message}\n${SCRIPT_GRAMMAR}`;
      return reply(response, errorAnswer(400, 'invalid_request_error', message, 'script'));
    }
    if (act === undefined) return this.#serve(path, request, response);
    this.#perform(act, 'scripted', path, request, response, undefined);
  }

  /** @returns undefined when the limit is to decide */
  #readScript(script: string, id: string | string[] | undefined): Act | undefined {
    const steps = parseScript(script);
    if (typeof id !== 'string' && steps.length > 1) throw new ScriptError('several steps need an x-practice-id');
    const attempt = typeof id === 'string' ? this.#run.attempts.next(id) : 1;
    const step = steps[Math.min(attempt, steps.length) - 1] ?? steps[0];
    return step === 'pass' ? undefined : step;
  }

  #serve(path: string, request: IncomingMessage, response: ServerResponse): void {
    const upstream = this.#upstream;
    const { random } = this.#run;
    const { hints = 'none', afterCharge, reasonHeader } = this.#spec;
    const asked = { method: request.method ?? 'GET', path };
    const conduct = upstream.decide(this.#now(), random, asked);
    let act = chooseAct(conduct, hints, Date.now(), reasonHeader);
    if (afterCharge !== undefined && act.works && chargedObject(request.method, path) !== undefined) {
      act = spoilCharge(act, afterCharge, random);
    }
    const holds = conduct.kind === 'serve' || conduct.kind === 'fail' ? upstream : undefined;
    this.#perform(act, KINDS[conduct.kind], path, request, response, holds);
  }

  #perform(
    act: Act,
    kind: Kind,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
    holds: Upstream | undefined,
  ): void {
    const { tally, ledger } = this.#run;
    const client = request.headers['x-api-key'];
    tally.begin(typeof client === 'string' ? client : 'anonymous', kind);
    perform(act, findRoute(request.method, path, ledger), request, response, (how) => {
      tally.end(how);
      holds?.leave(this.#now(), { method: request.method ?? 'GET', path });
    });
  }
}

const KINDS = { serve: 'accepted', throttle: 'rejected', fail: 'errors', down: 'errors' } as const;

function startRun({ seed = 1 }: PracticeSpec): Run {
  return {
    startedAt: performance.now(),
    ledger: new Ledger(Date.now),
    tally: new Tally(),
    attempts: new Attempts(),
    random: seededRandom(seed),
  };
}

function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

function reply(response: ServerResponse, { status, headers, body }: Answer): void {
  response.writeHead(status, framed(status, headers, body.length));
  response.end(body);
}
