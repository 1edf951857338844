import type { ExpositionFormat } from '../telemetry/metrics/exposition/exposition-format.ts';
import type { Millis } from '../core/scalars.ts';

/** For each millisecond that metrics take, as many without them: all scrapes together use a fifth of the processor at most. */
const PAUSE_FACTOR = 4;

export interface PacedExpositionOptions {
  readonly render: (format: ExpositionFormat) => string | Promise<string>;
  readonly now: () => Millis;
  readonly sleep: (time: Millis) => Promise<unknown>;
}

/**
 * The metrics as text, for anybody who can reach the port. Scrapes that wait share one rendering, which begins after all of them have
 * arrived, so that nobody gets an older state than that of the request, and many scrapes cost hardly more than a few.
 */
export class PacedExposition {
  readonly #options: PacedExpositionOptions;
  readonly #next = new Map<ExpositionFormat, Promise<Buffer>>();
  #idleUntil: Millis = Number.NEGATIVE_INFINITY;

  constructor(options: PacedExpositionOptions) {
    this.#options = options;
  }

  /** Rejects as the rendering does. */
  read(format: ExpositionFormat): Promise<Buffer> {
    const shared = this.#next.get(format) ?? this.#render(format);
    this.#next.set(format, shared);
    return shared;
  }

  async #render(format: ExpositionFormat): Promise<Buffer> {
    const { render, now, sleep } = this.#options;
    await Promise.resolve(); // `read` has to know it first
    for (let wait = this.#idleUntil - now(); wait > 0; wait = this.#idleUntil - now()) await sleep(Math.ceil(wait));
    this.#next.delete(format);
    const since = now();
    try {
      return Buffer.from(await render(format));
    } finally {
      this.#idleUntil = Math.max(this.#idleUntil, now() + PAUSE_FACTOR * (now() - since));
    }
  }
}
