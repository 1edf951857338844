import type { Worker } from 'node:cluster';
import type { Logger } from 'pino';
import type { DeliveryOperation } from '../../sharing/deliveries/delivery-protocol.ts';
import type { KeyOperation } from '../../sharing/keys/key-protocol.ts';
import type { NumberedQuotaCall } from '../../sharing/quotas/primary-quotas.ts';
import type { Millis, Random } from '../../core/scalars.ts';
import type { MessageFromWorker, ReloadMessage, WorkerStart, MessageToWorker } from './worker-messages.ts';
import { deserializeError, isFromWorker } from './worker-messages.ts';
import { PendingQueries } from './pending-queries.ts';
import { WorkerQueryDispatch } from './worker-query-dispatch.ts';
import { RestartDelay } from './restart-delay.ts';

export interface WorkerSupervisorParts {
  readonly count: number;
  readonly logger: Logger;
  readonly random: Random;
  /** Starts a worker process. */
  readonly fork: () => Worker;
  /** Makes the start message of a worker. @param url where the other workers listen, once they do */
  readonly startOf: (worker: number, url: string | undefined) => WorkerStart;
  /** The start message has been sent: the worker handles messages sent now before it serves. */
  readonly onJoin: (worker: number) => void;
  readonly onReport: (worker: number, report: Extract<MessageFromWorker, { type: 'report' }>['report']) => void;
  readonly onFailure: (message: Extract<MessageFromWorker, { type: 'failure' }>) => void;
  readonly onKeyOperations: (worker: number, operations: readonly KeyOperation[]) => void;
  readonly onDeliveryOperations: (worker: number, operations: readonly DeliveryOperation[]) => void;
  readonly onQuotaCall: (worker: number, call: NumberedQuotaCall) => void;
  readonly onListening: () => void;
  /** No request of the worker uses a configuration before this generation any more. */
  readonly onSettled: (worker: number, generation: number) => void;
  readonly onExit: (worker: number) => void;
  /** All messages of the worker have arrived. It has ended, or does so soon. */
  readonly onDisconnect: (worker: number) => void;
}

/** A worker's result of a reload is ignored after this. */
const RELOAD_TIMEOUT: Millis = 5000;
const KILLED_AFTER: Millis = 1000;

/** Starts the workers, and replaces each one that exits. */
export class WorkerSupervisor {
  readonly #parts: WorkerSupervisorParts;
  readonly #all = new Map<number, Worker>();
  readonly #listening = new Set<number>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #restartDelay = new RestartDelay();
  #restarts = 0;
  #isEnding = false;
  #url: string | undefined;
  #started: { readonly resolve: (url: string) => void; readonly reject: (error: Error) => void } | undefined;
  #generation = 0;
  #reloading:
    | { readonly generation: number; readonly onResult: (worker: number, problem: string | undefined) => void }
    | undefined;
  readonly #pending = new PendingQueries((worker, query) => this.send(worker, query));
  /** Queries workers about themselves. */
  readonly queries = new WorkerQueryDispatch(this.#pending, this.#all, this.#listening);

  constructor(parts: WorkerSupervisorParts) {
    this.#parts = parts;
  }

  /** The number of workers that serve. */
  get serving(): number {
    return this.#listening.size;
  }

  get areAllServing(): boolean {
    return this.#listening.size >= this.#parts.count;
  }

  /** The number of workers that have been replaced. */
  get restarts(): number {
    return this.#restarts;
  }

  /**
   * Resolves with their URL when all workers listen.
   * @throws the error that prevented one of them
   */
  start(): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#started = { resolve, reject };
      for (let i = 0; i < this.#parts.count; i += 1) this.#fork();
    });
  }

  send(to: number, message: MessageToWorker): void {
    const worker = this.#all.get(to);
    if (worker?.isConnected() === true) worker.send(message, () => undefined); // the worker may exit meanwhile
  }

  /** The number of reloads so far. */
  get generation(): number {
    return this.#generation;
  }

  /** The ids of all workers, those that do not serve yet included. */
  get all(): Iterable<number> {
    return this.#all.keys();
  }

  /**
   * Sends a new configuration to all workers. A worker that cannot apply it is drained and replaced. Returns their problems.
   */
  async reload(next: Pick<ReloadMessage, 'config' | 'overrides'>): Promise<readonly string[]> {
    this.#generation += 1;
    const generation = this.#generation;
    const problems: string[] = [];
    // A starting worker applies it before it serves, and answers later.
    const waitingFor = new Set(this.#listening);
    const all = Promise.withResolvers<undefined>();
    const onReloaded = (worker: number, problem: string | undefined): void => {
      if (problem !== undefined) {
        problems.push(`worker ${worker}: ${problem}`);
        this.send(worker, { type: 'drain' });
      }
      waitingFor.delete(worker);
      if (waitingFor.size === 0) all.resolve(undefined);
    };
    this.#reloading = { generation, onResult: onReloaded };
    for (const worker of this.#all.keys()) this.send(worker, { type: 'reload', generation, ...next });
    if (waitingFor.size === 0) all.resolve(undefined);
    const late = setTimeout(all.resolve, RELOAD_TIMEOUT, undefined);
    await all.promise;
    clearTimeout(late);
    return problems;
  }

  /** Resolves when all workers have exited, and their last messages have arrived. After `within` and a second, they are killed. */
  async end(how: 'drain' | 'close', within: Millis): Promise<void> {
    this.#isEnding = true;
    // A second signal ends the primary at once, and the workers with it.
    process.once('exit', () => this.#kill());
    for (const timer of this.#timers) clearTimeout(timer);
    const ended = [...this.#all.values()].flatMap((worker) => [
      new Promise<void>((resolve) => {
        worker.once('exit', () => resolve());
      }),
      new Promise<void>((resolve) => {
        if (worker.isConnected()) worker.once('disconnect', () => resolve());
        else resolve();
      }),
    ]);
    for (const worker of this.#all.keys()) this.send(worker, { type: how });
    const late = setTimeout(() => this.#kill(), within + KILLED_AFTER);
    await Promise.all(ended);
    clearTimeout(late);
  }

  #kill(): void {
    for (const worker of this.#all.values()) worker.process.kill('SIGKILL');
  }

  #fork(): void {
    const worker = this.#parts.fork();
    const { id } = worker;
    const since = performance.now();
    this.#all.set(id, worker);
    worker.on('message', (message: unknown) => {
      if (isFromWorker(message)) this.#onMessage(id, message);
    });
    // A failed send to an exiting worker is followed by its exit event.
    worker.on('error', () => undefined);
    worker.once('disconnect', () => this.#parts.onDisconnect(id));
    worker.once('exit', (code: number | null, signal: string | null) => this.#onExit(id, since, code, signal));
    // While others listen, cluster shares their socket, which it finds by the port of the configuration.
    const isAlone = this.#listening.size === 0;
    this.send(id, { type: 'start', start: this.#parts.startOf(id, isAlone ? this.#url : undefined) });
    this.#parts.onJoin(id);
  }

  #onMessage(id: number, message: MessageFromWorker): void {
    switch (message.type) {
      case 'report':
        return this.#parts.onReport(id, message.report);
      case 'keys':
        return this.#parts.onKeyOperations(id, message.operations);
      case 'deliveries':
        return this.#parts.onDeliveryOperations(id, message.operations);
      case 'quota':
        return this.#parts.onQuotaCall(id, message.call);
      case 'failure':
        return this.#parts.onFailure(message);
      case 'reloaded':
        if (message.generation === this.#reloading?.generation) this.#reloading.onResult(id, message.problem);
        return undefined;
      case 'settled':
        return this.#parts.onSettled(id, message.generation);
      case 'answer':
        return this.#pending.onResult(id, message);
      case 'unanswered':
        return this.#pending.onUnanswered(id, message.number);
      case 'listening':
        this.#listening.add(id);
        this.#url ??= message.url;
        this.#parts.logger.info({ worker: id, pid: this.#all.get(id)?.process.pid }, 'worker is serving');
        this.#parts.onListening();
        if (this.areAllServing) this.#onAllListening(this.#url);
        return undefined;
      case 'failed':
        if (this.#started !== undefined) this.#onStartFailed(deserializeError(message.failure));
        else if (!this.#isEnding) {
          this.#parts.logger.error({ worker: id, problem: message.failure.message }, 'worker failed to start');
        }
        return undefined;
    }
  }

  #onAllListening(url: string): void {
    this.#started?.resolve(url);
    this.#started = undefined;
  }

  #onStartFailed(error: Error): void {
    this.#isEnding = true;
    this.#started?.reject(error);
    this.#started = undefined;
  }

  #onExit(id: number, since: Millis, code: number | null, signal: string | null): void {
    this.#all.delete(id);
    this.#listening.delete(id);
    this.#reloading?.onResult(id, undefined);
    this.#pending.onWorkerExit(id);
    this.#parts.onExit(id);
    if (this.#isEnding) return;
    if (this.#started !== undefined) {
      return this.#onStartFailed(new Error(`a worker exited before it was ready (${signal ?? `exit code ${code}`})`));
    }
    const delay = this.#restartDelay.next(performance.now() - since, this.#parts.random);
    this.#parts.logger.error(
      { worker: id, exitCode: code ?? undefined, signal: signal ?? undefined, replacedInMs: Math.round(delay) },
      'worker exited and is replaced',
    );
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#restarts += 1;
      this.#fork();
    }, delay);
    this.#timers.add(timer);
  }
}
