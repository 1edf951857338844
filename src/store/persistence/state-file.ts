/** Keeps what was learned in a file, so that the next process need not learn it again. */
import { createHmac } from 'node:crypto';
import { constants, readFileSync, statSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Logger } from 'pino';
import { explain } from '../../config/load/substitute.ts';
import { originsOf } from '../../config/schema/upstream-schema.ts';
import type { KeptState, StateParts } from './state-persistence.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Learned } from './learned-state.ts';
import { learnedOf } from './learned-state.ts';
import type { StateContext } from './state-codec.ts';
import { readState, writeState } from './state-codec.ts';

const WRITE_EVERY: Millis = 10_000;
/** Of limits of clients, and of clients that are held: some megabytes, and milliseconds to write. */
const MOST = 10_000;
/** What is larger was not written here. */
const LARGEST = 16 * 1024 ** 2;

/** What was learned, in a file: read once, and written while it changes. */
export class StateFile implements KeptState {
  readonly #file: string;
  readonly #hashedBy: string | undefined;
  readonly #logger: Logger;
  readonly #parts: StateParts;
  #written = '';
  #failed = false;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  /** @param secret that keys the hashes of clients; undefined where the next process has another */
  constructor(file: string, secret: string | undefined, logger: Logger, parts: StateParts) {
    this.#file = file;
    this.#hashedBy = secret === undefined ? undefined : fingerprint(secret);
    this.#logger = logger;
    this.#parts = parts;
    this.#schedule();
  }

  restore(): void {
    const file = this.#file;
    let text: string;
    try {
      const { size } = statSync(file);
      if (size > LARGEST) throw Object.assign(new Error('too large'), { code: 'EFBIG' });
      text = readFileSync(file, 'utf8');
    } catch (error) {
      const why = explain(error);
      if (isMissing(error)) this.#logger.debug({ file }, 'no state file yet');
      else this.#logger.warn({ file, why }, 'the state file is ignored: everything is learned anew');
      return;
    }
    const read = readState(text, this.#context());
    if (read.kind === 'ignored') {
      this.#logger.warn({ file, why: read.why }, 'the state file is ignored: everything is learned anew');
      return;
    }
    const { learned, leftOut } = read;
    this.#parts.restore(learned);
    const told = { file, limits: learned.limits.length, holds: learned.holds.length };
    if (leftOut.length === 0) this.#logger.info(told, 'what was learned before is known again');
    else this.#logger.warn({ ...told, leftOut }, 'of what was learned before, a part is known again');
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#writing;
    await this.#write(true);
  }

  #schedule(): void {
    this.#timer = setTimeout(() => {
      this.#writing = this.#write(false).then(() => this.#schedule());
    }, WRITE_EVERY).unref();
  }

  async #write(isLast: boolean): Promise<void> {
    const { clock, limits, holds, upstreams } = this.#parts;
    const configured = upstreams();
    const initialRateOf = (name: string, nested: string) => {
      const upstream = configured[name];
      return (nested === '' ? upstream?.rateLimit : upstream?.limits.find((limit) => limit.name === nested))
        ?.initialRate;
    };
    const learned: Learned = { limits: learnedOf(limits(), initialRateOf, MOST, clock.now()), holds: holds(MOST) };
    // Times are told by two clocks that differ by a little each time.
    const state = JSON.stringify(learned);
    if (state === this.#written && !isLast) return;
    try {
      await replaceFile(this.#file, writeState(learned, this.#context()));
      this.#written = state;
      this.#failed = false;
    } catch (error) {
      const why = explain(error);
      if (!this.#failed) this.#logger.warn({ file: this.#file, why }, 'the state file cannot be written');
      this.#failed = true;
    }
  }

  #context(): StateContext {
    const upstreams = Object.entries(this.#parts.upstreams());
    return {
      wallClock: Date.now(),
      now: this.#parts.clock.now(),
      hashedBy: this.#hashedBy,
      origins: new Map(upstreams.map(([name, upstream]) => [name, originsOf(upstream)])),
    };
  }
}

/**
 * Whoever reads it, whenever this process or its machine ends, finds the old text or the new one, whole.
 * @throws an error of node:fs
 */
export async function replaceFile(file: string, text: string): Promise<void> {
  const draft = `${file}.tmp`;
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;
  const handle = await open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600);
  try {
    await handle.chmod(0o600); // one that was left may be another's to read
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, file);
  const folder = await open(dirname(file), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Tells whether two secrets are one, and nothing of either. */
function fingerprint(secret: string): string {
  return createHmac('sha256', secret).update('state').digest('hex').slice(0, 16);
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
