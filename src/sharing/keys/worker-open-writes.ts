import type { OpenWrite, OpenWriteLog } from '../../core/idempotency/open-writes.ts';

/** The open writes of workers. */
export class WorkerOpenWrites {
  readonly #byWorker = new Map<number, Map<string, OpenWrite>>();
  readonly #log: OpenWriteLog | undefined;
  readonly #onInterrupted: (write: OpenWrite) => void;

  /** @param log undefined if they need not outlive this process @param onInterrupted the worker of a write has ended */
  constructor(log: OpenWriteLog | undefined, onInterrupted: (write: OpenWrite) => void) {
    this.#log = log;
    this.#onInterrupted = onInterrupted;
  }

  onSent(worker: number, write: OpenWrite): void {
    const own = this.#byWorker.get(worker) ?? new Map<string, OpenWrite>();
    this.#byWorker.set(worker, own.set(write.requestId, write));
    this.#log?.onSent(write);
  }

  onEnd(worker: number, requestId: string): void {
    this.#byWorker.get(worker)?.delete(requestId);
    this.#log?.onEnd(requestId);
  }

  leave(worker: number): void {
    for (const write of this.#byWorker.get(worker)?.values() ?? []) {
      this.#onInterrupted(write);
      this.#log?.onEnd(write.requestId);
    }
    this.#byWorker.delete(worker);
  }
}
