import type { ServerResponse } from 'node:http';
import type { EventFrame, AdminOperations, FrameSource } from './api/admin-operations.ts';

/** Maximum number of viewers. */
const MAX_VIEWERS = 32;
const FRAME_INTERVAL_MS = 500;
/** Frames between two comments. Comments keep proxies in between from closing an idle connection. */
const FRAMES_PER_COMMENT = 30;
/** A viewer with more unread bytes skips frames; after too many skipped frames its connection is closed. */
const MAX_UNREAD_BYTES = 1024 * 1024;
const MAX_SKIPPED_FRAMES = 30;

/**
 * Sends server-sent events to all viewers. Each frame is built once for all of them, none is built without viewers, and a slow
 * viewer does not delay the others.
 */
export class EventBroadcaster {
  readonly #operations: Pick<AdminOperations, 'watch'>;
  readonly #frameIntervalMs: number;
  readonly #viewers = new Map<ServerResponse, { skipped: number }>();
  #isRunning = false;
  #id = 0;
  /** The last status event, for viewers that connect between two of them. */
  #lastStatus: Buffer | undefined;

  /** @param frameIntervalMs milliseconds between frames; every second frame contains the status */
  constructor(operations: Pick<AdminOperations, 'watch'>, frameIntervalMs: number = FRAME_INTERVAL_MS) {
    this.#operations = operations;
    this.#frameIntervalMs = frameIntervalMs;
  }

  get isFull(): boolean {
    return this.#viewers.size >= MAX_VIEWERS;
  }

  /** Adds a viewer. @param response without its head; stays open until the viewer disconnects */
  open(response: ServerResponse, headers: Readonly<Record<string, number | string | string[] | undefined>>): void {
    response.writeHead(200, {
      ...headers,
      'content-type': 'text/event-stream; charset=utf-8',
      'x-accel-buffering': 'no',
    });
    response.write('retry: 1000\n\n');
    if (this.#lastStatus !== undefined) response.write(this.#lastStatus);
    this.#viewers.set(response, { skipped: 0 });
    response.on('error', () => undefined); // `close` follows
    response.on('close', () => this.#viewers.delete(response));
    if (!this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    const watch = this.#operations.watch();
    for (let frames = 1; this.#viewers.size > 0; frames += 1) {
      const since = performance.now();
      await this.#sendFrame(watch);
      if (frames % FRAMES_PER_COMMENT === 0) this.#broadcast(Buffer.from(': still here\n\n'));
      await sleep(this.#frameIntervalMs - (performance.now() - since));
    }
    this.#lastStatus = undefined;
    this.#isRunning = false;
  }

  async #sendFrame(frames: FrameSource): Promise<void> {
    let frame: EventFrame;
    try {
      frame = await frames.nextFrame();
    } catch {
      // The next frame may succeed. Viewers notice a missing status by themselves.
      return;
    }
    const { status, timelineEvents, requests } = frame;
    const parts = timelineEvents.map((event) => this.#formatEvent('timeline', event));
    if (requests !== undefined) parts.push(this.#formatEvent('requests', requests));
    if (status !== undefined) {
      const statusEvent = this.#formatEvent('status', status);
      this.#lastStatus = Buffer.from(statusEvent);
      parts.push(statusEvent);
    }
    if (parts.length > 0) this.#broadcast(Buffer.from(parts.join('')));
  }

  #formatEvent(name: string, data: unknown): string {
    this.#id += 1;
    return `id: ${this.#id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  }

  #broadcast(bytes: Buffer): void {
    for (const [response, viewer] of this.#viewers) {
      if (response.writableLength <= MAX_UNREAD_BYTES) {
        viewer.skipped = 0;
        response.write(bytes);
        continue;
      }
      viewer.skipped += 1;
      if (viewer.skipped > MAX_SKIPPED_FRAMES) response.destroy();
    }
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, Math.max(0, ms)).unref();
  });
}
