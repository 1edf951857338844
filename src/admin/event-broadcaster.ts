import type { ServerResponse } from 'node:http';
import type { Frame, Operations, Watch } from './api/admin-operations.ts';

/** So many may watch. */
const MOST_VIEWERS = 32;
const EVERY = 500;
/** Frames between two comments, which keep what lies between from taking a connection for dead. */
const COMMENT_EVERY = 30;
/** A viewer that has so many bytes unread gets no more; and for so many frames, no more at all. */
const MOST_UNREAD = 1024 * 1024;
const MOST_SKIPPED = 30;

/**
 * Server-sent events, for all who watch: each frame is made and written once. Nothing is looked at while nobody watches,
 * and nobody who reads slowly holds up the others.
 */
export class Feed {
  readonly #operations: Pick<Operations, 'watch'>;
  readonly #every: number;
  readonly #viewers = new Map<ServerResponse, { skipped: number }>();
  #isRunning = false;
  #id = 0;
  /** The last status, for who comes between two. */
  #status: Buffer | undefined;

  /** @param every milliseconds from one frame to the next; every other has the status */
  constructor(operations: Pick<Operations, 'watch'>, every: number = EVERY) {
    this.#operations = operations;
    this.#every = every;
  }

  get isFull(): boolean {
    return this.#viewers.size >= MOST_VIEWERS;
  }

  /** @param response whose head has not been written; it stays open until its viewer goes */
  open(response: ServerResponse, headers: Readonly<Record<string, number | string | string[] | undefined>>): void {
    response.writeHead(200, {
      ...headers,
      'content-type': 'text/event-stream; charset=utf-8',
      'x-accel-buffering': 'no',
    });
    response.write('retry: 1000\n\n');
    if (this.#status !== undefined) response.write(this.#status);
    this.#viewers.set(response, { skipped: 0 });
    response.on('error', () => undefined); // its close says the same
    response.on('close', () => this.#viewers.delete(response));
    if (!this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    const watch = this.#operations.watch();
    for (let frames = 1; this.#viewers.size > 0; frames += 1) {
      const since = performance.now();
      await this.#tellFrame(watch);
      if (frames % COMMENT_EVERY === 0) this.#broadcast(Buffer.from(': still here\n\n'));
      await sleep(this.#every - (performance.now() - since));
    }
    this.#status = undefined;
    this.#isRunning = false;
  }

  async #tellFrame(watch: Watch): Promise<void> {
    let frame: Frame;
    try {
      frame = await watch.frame();
    } catch {
      // The next may be had; and who watches sees that none came.
      return;
    }
    const { status, moments, requests } = frame;
    const parts = moments.map((moment) => this.#event('timeline', moment));
    if (requests !== undefined) parts.push(this.#event('requests', requests));
    if (status !== undefined) {
      const told = this.#event('status', status);
      this.#status = Buffer.from(told);
      parts.push(told);
    }
    if (parts.length > 0) this.#broadcast(Buffer.from(parts.join('')));
  }

  #event(name: string, data: unknown): string {
    this.#id += 1;
    return `id: ${this.#id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  }

  #broadcast(bytes: Buffer): void {
    for (const [response, viewer] of this.#viewers) {
      if (response.writableLength <= MOST_UNREAD) {
        viewer.skipped = 0;
        response.write(bytes);
        continue;
      }
      viewer.skipped += 1;
      if (viewer.skipped > MOST_SKIPPED) response.destroy();
    }
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, Math.max(0, ms)).unref();
  });
}
