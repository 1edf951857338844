import cluster from 'node:cluster';
import type { Worker } from 'node:cluster';
import type { Logger } from 'pino';
import type { Millis, Random } from '../../core/exchange/attempt-outcome.ts';
import type { FromWorker, QuestionName, Reload, Start, ToWorker, WorkerDialogue } from './worker-messages.ts';
import { errorOf, isFromWorker, isOrder } from './worker-messages.ts';
import { Questions } from './pending-queries.ts';
import { WORKER } from './worker-argument.ts';

export interface WorkersParts {
  readonly count: number;
  readonly logger: Logger;
  readonly random: Random;
  /** What a new one has to know. @param url where the others listen, once they do */
  readonly startOf: (worker: number, url: string | undefined) => Start;
  /** It has been told to start: what it is told next it hears before it serves. */
  readonly onJoin: (worker: number) => void;
  readonly onReport: (worker: number, report: Extract<FromWorker, { type: 'report' }>['report']) => void;
  readonly onListening: () => void;
  /** Of what was configured before this, nothing is left there. */
  readonly onSettled: (worker: number, generation: number) => void;
  readonly onGone: (worker: number) => void;
}

/** How long one that has ended is waited for before the next: U(½, 1) of 0.1 s, and twice that after each that did not last. */
const BASE: Millis = 100;
const LONGEST: Millis = 10_000;
const LASTED: Millis = 10_000;
/** What one says of a reload later than this, it says to itself. */
const RELOADED_WITHIN: Millis = 5000;
const KILLED_AFTER: Millis = 1000;

/** The processes that serve: as many as are wanted, each replaced when it ends. */
export class Workers {
  readonly #parts: WorkersParts;
  readonly #all = new Map<number, Worker>();
  readonly #listening = new Set<number>();
  readonly #timers = new Set<NodeJS.Timeout>();
  /** Of those that ended, how many in a row did not last. */
  #short = 0;
  #restarts = 0;
  #isEnding = false;
  #url: string | undefined;
  #started: { readonly resolve: (url: string) => void; readonly reject: (error: Error) => void } | undefined;
  #generation = 0;
  #reloading:
    | { readonly generation: number; readonly heard: (worker: number, problem: string | undefined) => void }
    | undefined;
  readonly #questions = new Questions((worker, question) => this.send(worker, question));

  constructor(parts: WorkersParts) {
    this.#parts = parts;
    cluster.setupPrimary({ args: [WORKER], serialization: 'advanced' });
  }

  /** Those that serve. */
  get serving(): number {
    return this.#listening.size;
  }

  get areAllServing(): boolean {
    return this.#listening.size >= this.#parts.count;
  }

  /** How many have been replaced. */
  get restarts(): number {
    return this.#restarts;
  }

  /**
   * Resolves when all of them listen, with where.
   * @throws the error that keeps one of them from it
   */
  start(): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#started = { resolve, reject };
      for (let i = 0; i < this.#parts.count; i += 1) this.#fork();
    });
  }

  send(to: number, message: ToWorker): void {
    const worker = this.#all.get(to);
    if (worker?.isConnected() === true) worker.send(message, () => undefined); // it may end meanwhile
  }

  /** Of the last reload; 0 before there was one. */
  get generation(): number {
    return this.#generation;
  }

  /** Asks each that serves, and returns what those tell that answer in time. */
  ask<K extends QuestionName>(
    name: K,
    asks: (worker: number) => WorkerDialogue[K]['asks'],
  ): Promise<ReadonlyMap<number, WorkerDialogue[K]['tells']>> {
    // Those that are still being started are not waited for; what they are told to do they do before they serve.
    if (isOrder(name)) {
      const others = [...this.#all.keys()].filter((worker) => !this.#listening.has(worker));
      void this.#questions.ask(others, name, asks);
    }
    return this.#questions.ask(this.#listening, name, asks);
  }

  /** All there are, whether or not they serve yet. */
  get all(): Iterable<number> {
    return this.#all.keys();
  }

  /**
   * Has each of them go on with another configuration. One that cannot is replaced when it has ended what it has.
   * Returns what kept any of them from it.
   */
  async reload(next: Pick<Reload, 'config' | 'orders'>): Promise<readonly string[]> {
    this.#generation += 1;
    const generation = this.#generation;
    const problems: string[] = [];
    // One that is still being started has what it is told heard before it serves, and answers later.
    const asked = new Set(this.#listening);
    const all = Promise.withResolvers<undefined>();
    const heard = (worker: number, problem: string | undefined): void => {
      if (problem !== undefined) {
        problems.push(`worker ${worker}: ${problem}`);
        this.send(worker, { type: 'drain' });
      }
      asked.delete(worker);
      if (asked.size === 0) all.resolve(undefined);
    };
    this.#reloading = { generation, heard };
    for (const worker of this.#all.keys()) this.send(worker, { type: 'reload', generation, ...next });
    if (asked.size === 0) all.resolve(undefined);
    const late = setTimeout(all.resolve, RELOADED_WITHIN, undefined);
    await all.promise;
    clearTimeout(late);
    return problems;
  }

  /** Resolves when all have ended; those that take longer are killed. */
  async end(how: 'drain' | 'close', within: Millis): Promise<void> {
    this.#isEnding = true;
    // A second signal ends the primary at once, and means all of them.
    process.once('exit', () => this.#kill());
    for (const timer of this.#timers) clearTimeout(timer);
    const ended = [...this.#all.values()].map(
      (worker) =>
        new Promise<void>((resolve) => {
          worker.once('exit', () => resolve());
        }),
    );
    for (const worker of this.#all.keys()) this.send(worker, { type: how });
    const late = setTimeout(() => this.#kill(), within + KILLED_AFTER);
    await Promise.all(ended);
    clearTimeout(late);
  }

  #kill(): void {
    for (const worker of this.#all.values()) worker.process.kill('SIGKILL');
  }

  #fork(): void {
    const worker = cluster.fork();
    const { id } = worker;
    const since = performance.now();
    this.#all.set(id, worker);
    worker.on('message', (message: unknown) => {
      if (isFromWorker(message)) this.#hear(id, message);
    });
    // What cannot be sent to one that ends is told by its end.
    worker.on('error', () => undefined);
    worker.once('exit', (code: number | null, signal: string | null) => this.#replace(id, since, code, signal));
    // While others listen, the socket is theirs too, and its port found by what was asked for at first.
    const isAlone = this.#listening.size === 0;
    this.send(id, { type: 'start', start: this.#parts.startOf(id, isAlone ? this.#url : undefined) });
    this.#parts.onJoin(id);
  }

  #hear(id: number, message: FromWorker): void {
    switch (message.type) {
      case 'report':
        return this.#parts.onReport(id, message.report);
      case 'reloaded':
        if (message.generation === this.#reloading?.generation) this.#reloading.heard(id, message.problem);
        return undefined;
      case 'settled':
        return this.#parts.onSettled(id, message.generation);
      case 'answer':
        return this.#questions.hear(id, message);
      case 'unanswered':
        return this.#questions.unanswered(id, message.number);
      case 'listening':
        this.#listening.add(id);
        this.#url ??= message.url;
        this.#parts.logger.info({ worker: id, pid: this.#all.get(id)?.process.pid }, 'a worker serves');
        this.#parts.onListening();
        if (this.areAllServing) this.#begun(this.#url);
        return undefined;
      case 'failed':
        if (this.#started !== undefined) this.#failed(errorOf(message.failure));
        else if (!this.#isEnding) {
          this.#parts.logger.error({ worker: id, problem: message.failure.message }, 'a worker could not be started');
        }
        return undefined;
    }
  }

  #begun(url: string): void {
    this.#started?.resolve(url);
    this.#started = undefined;
  }

  #failed(error: Error): void {
    this.#isEnding = true;
    this.#started?.reject(error);
    this.#started = undefined;
  }

  #replace(id: number, since: Millis, code: number | null, signal: string | null): void {
    this.#all.delete(id);
    this.#listening.delete(id);
    this.#reloading?.heard(id, undefined);
    this.#questions.gone(id);
    this.#parts.onGone(id);
    if (this.#isEnding) return;
    if (this.#started !== undefined) {
      return this.#failed(new Error(`a worker ended before it served (${signal ?? `exit code ${code}`})`));
    }
    this.#short = performance.now() - since < LASTED ? this.#short + 1 : 0;
    const delay = Math.min(LONGEST, BASE * 2 ** Math.min(this.#short, 16)) * (0.5 + 0.5 * this.#parts.random());
    this.#parts.logger.error(
      { worker: id, exitCode: code ?? undefined, signal: signal ?? undefined, replacedInMs: Math.round(delay) },
      'a worker has ended, and is replaced',
    );
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#restarts += 1;
      this.#fork();
    }, delay);
    this.#timers.add(timer);
  }
}
