import { createHmac } from 'node:crypto';
import { constants, readFileSync, statSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { platform } from 'node:os';
import { dirname } from 'node:path';
import type { Logger } from 'pino';
import { describeFileError } from '../../config/load/substitute.ts';
import { costUnitOf } from '../../config/schema/limits/cost-unit.ts';
import { upstreamOrigins } from '../../config/schema/upstream-schema.ts';
import type { StateDatabase } from '../sqlite/state-database.ts';
import type { StatePersistence, StatePersistenceParts } from './state-persistence.ts';
import type { Millis } from '../../core/scalars.ts';
import type { LearnedState } from './learned-state.ts';
import { collectLearnedLimits } from './learned-state.ts';
import type { StateContext } from './state-codec.ts';
import { decodeState, encodeState } from './state-codec.ts';

const WRITE_INTERVAL: Millis = 10_000;
/** The maximum number of limits, and of holds: some megabytes, written in milliseconds. */
const MAX_ENTRIES = 10_000;
/** A larger file was not written by this program. */
const MAX_FILE_BYTES = 16 * 1024 ** 2;

/** Where learned state is stored as a text. */
export interface StateMedium {
  /** Named in messages. */
  readonly file: string;
  /** @throws an error; ENOENT if nothing is stored */
  read(): string;
  /** @throws an error */
  write(text: string): Promise<void>;
}

/** Stores learned state: reads it once, and writes it every 10 s if it has changed. */
export class StateFile implements StatePersistence {
  readonly #medium: StateMedium;
  readonly #secretFingerprint: string | undefined;
  readonly #logger: Logger;
  readonly #parts: StatePersistenceParts;
  #lastWritten = '';
  #failed = false;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  /** @param secret the key of the hashes of clients; undefined if the next process has another one */
  constructor(medium: StateMedium, secret: string | undefined, logger: Logger, parts: StatePersistenceParts) {
    this.#medium = medium;
    this.#secretFingerprint = secret === undefined ? undefined : secretFingerprint(secret);
    this.#logger = logger;
    this.#parts = parts;
    this.#schedule();
  }

  restore(): void {
    const { file } = this.#medium;
    let text: string;
    try {
      text = this.#medium.read();
    } catch (error) {
      const why = describeFileError(error);
      if (isNotFound(error)) this.#logger.debug({ file }, 'no state file yet');
      else this.#logger.warn({ file, why }, 'state file ignored: starting without learned state');
      return;
    }
    const decoded = decodeState(text, this.#context());
    if (decoded.kind === 'ignored') {
      this.#logger.warn({ file, why: decoded.reason }, 'state file ignored: starting without learned state');
      return;
    }
    const { learned, leftOut } = decoded;
    this.#parts.restore(learned);
    const fields = { file, limits: learned.limits.length, holds: learned.holds.length };
    if (leftOut.length === 0) this.#logger.info(fields, 'restored learned state');
    else this.#logger.warn({ ...fields, leftOut }, 'restored a part of the learned state');
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#writing;
    await this.#write(true);
  }

  #schedule(): void {
    this.#timer = setTimeout(() => {
      this.#writing = this.#write(false).then(() => this.#schedule());
    }, WRITE_INTERVAL).unref();
  }

  async #write(isLast: boolean): Promise<void> {
    const { clock, limits, activeHolds, config } = this.#parts;
    const configured = config().upstreams;
    const initialRateOf = (name: string, nested: string) => {
      const upstream = configured[name];
      return (nested === '' ? upstream?.rateLimit : upstream?.limits.find((limit) => limit.name === nested))
        ?.initialRate;
    };
    const learned: LearnedState = {
      limits: collectLearnedLimits(limits(), initialRateOf, MAX_ENTRIES, clock.now()),
      holds: activeHolds(MAX_ENTRIES),
    };
    // Compared before encoding: encoded times vary with the difference of two clocks.
    const state = JSON.stringify(learned);
    if (state === this.#lastWritten && !isLast) return;
    try {
      await this.#medium.write(encodeState(learned, this.#context()));
      this.#lastWritten = state;
      this.#failed = false;
    } catch (error) {
      const why = describeFileError(error);
      if (!this.#failed) this.#logger.warn({ file: this.#medium.file, why }, 'cannot write the state file');
      this.#failed = true;
    }
  }

  #context(): StateContext {
    const config = this.#parts.config();
    const upstreams = Object.entries(config.upstreams);
    return {
      wallClock: Date.now(),
      now: this.#parts.clock.now(),
      secretFingerprint: this.#secretFingerprint,
      unitOf: (upstream, nested) => costUnitOf(config, upstream, nested),
      origins: new Map(upstreams.map(([name, upstream]) => [name, upstreamOrigins(upstream)])),
    };
  }
}

export function openMedium(place: string | StateDatabase): StateMedium {
  return typeof place === 'string' ? fileMedium(place) : databaseMedium(place);
}

function fileMedium(file: string): StateMedium {
  return {
    file,
    read() {
      const { size } = statSync(file);
      if (size > MAX_FILE_BYTES) throw Object.assign(new Error('too large'), { code: 'EFBIG' });
      return readFileSync(file, 'utf8');
    },
    write: (text) => writeFileAtomically(file, text, refuseDatabase),
  };
}

function databaseMedium(database: StateDatabase): StateMedium {
  return {
    file: database.file,
    read() {
      const text = database.readLearned();
      if (text === undefined) throw Object.assign(new Error('nothing is stored yet'), { code: 'ENOENT' });
      return text;
    },
    write: (text) => {
      database.writeLearned(text);
      return Promise.resolve();
    },
  };
}

const DATABASE_FORMAT = 'SQLite format 3';

/** A process with `state.store: sqlite` may have converted the file meanwhile, and keeps idempotency keys in it. */
async function refuseDatabase(file: string): Promise<void> {
  const present = await open(file, 'r').catch(() => undefined);
  if (present === undefined) return; // nothing is lost
  try {
    const { buffer } = await present.read(Buffer.alloc(DATABASE_FORMAT.length), 0, DATABASE_FORMAT.length, 0);
    if (buffer.toString('latin1') === DATABASE_FORMAT) throw Object.assign(new Error(file), { code: 'EDATABASE' });
  } finally {
    await present.close();
  }
}

/**
 * Writes a file so that a reader finds either the old or the new text, complete, even after a crash of the machine.
 * @param check runs directly before the old file is replaced; an error leaves it as it is
 * @throws an error of node:fs, or of `check`
 */
export async function writeFileAtomically(
  file: string,
  text: string,
  check: (file: string) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const temporary = `${file}.tmp`;
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;
  const handle = await open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600);
  try {
    await handle.chmod(0o600); // a leftover file may have other permissions
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await check(file);
  await rename(temporary, file);
  if (platform() === 'win32') return; // it refuses to sync a folder (EPERM)
  const folder = await open(dirname(file), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Equal for equal secrets, and reveals nothing else of them. */
function secretFingerprint(secret: string): string {
  return createHmac('sha256', secret).update('state').digest('hex').slice(0, 16);
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
