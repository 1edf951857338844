/** When the configuration is read again: what became of it. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import type { Effective } from '../config/load/config-diff.ts';
import type { Validation } from '../config/load/config-source.ts';
import { ConfigSource } from '../config/load/config-source.ts';
import { formatMistakes, formatWarnings } from '../config/load/mistakes.ts';
import type { Config } from '../config/schema/config-schema.ts';
import type { Listen } from '../core/events/proxy-events.ts';
import { readClientTls } from '../http/tls/client-tls.ts';
import type { ReloadResult } from './reload-result.ts';

export type { ReloadResult } from './reload-result.ts';

/** Of the last reading; times in milliseconds of the epoch. */
export interface LastReload {
  readonly at: number;
  readonly ok: boolean;
  readonly problem: string | undefined;
}

/** What others may do with the configuration of a process. */
export interface ReloadControls {
  /** Reads it again from where it came, and puts it in effect. Never rejects. */
  reload(): Promise<ReloadResult>;
  /** Puts one in effect that was read elsewhere. Never rejects. */
  apply(effective: Effective): Promise<ReloadResult>;
  /** What the last reading came to; undefined before there was a second one. */
  lastReload(): LastReload | undefined;
  /** When the one in effect took effect; milliseconds of the epoch. */
  loadedAt(): number;
  /** As of `ConfigSource.validate`. Changes nothing, and never throws. */
  validateConfig(text: string): Validation;
}

export interface ReloadsParts {
  /** Undefined: there is nothing to read again. */
  readonly source: ConfigSource | undefined;
  readonly logger: Logger;
  readonly listen: Listen;
  readonly wallClock: () => number;
  /** Puts it in effect, whole or not at all. @throws what keeps it from that */
  readonly apply: (config: Config) => void | Promise<void>;
  /** It says what the one in effect says. */
  readonly onUnchanged?: () => void;
}

/** Reads the configuration again, one reading at a time, and has it put in effect where it is sound and has changed. */
export class Reloads {
  readonly #parts: ReloadsParts;
  #current: Effective;
  #certificates: ReadonlyMap<string, string>;
  #last: LastReload | undefined;
  #loadedAt: number;
  #readAt: number;
  /** Never rejects. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(current: Effective, parts: ReloadsParts) {
    this.#current = current;
    this.#parts = parts;
    this.#certificates = digestCertificates(current.config);
    this.#loadedAt = parts.wallClock();
    this.#readAt = this.#loadedAt;
  }

  /** In effect. */
  get current(): Effective {
    return this.#current;
  }

  get last(): LastReload | undefined {
    return this.#last;
  }

  /** When what is in effect took effect; milliseconds of the epoch. */
  get loadedAt(): number {
    return this.#loadedAt;
  }

  /** For metrics. */
  get reading(): { readonly ok: boolean; readonly readAt: number } {
    return { ok: this.#last?.ok ?? true, readAt: this.#readAt };
  }

  /** Reads it from where it came. Never rejects. */
  reload(): Promise<ReloadResult> {
    return this.#inTurn(() => this.#read());
  }

  /** Takes one that was read elsewhere. Never rejects. */
  apply(effective: Effective): Promise<ReloadResult> {
    return this.#inTurn(() => this.#take(effective));
  }

  validate(text: string): Validation {
    return (this.#parts.source ?? NO_SOURCE).validate(text);
  }

  #inTurn(act: () => Promise<ReloadResult>): Promise<ReloadResult> {
    const turn = this.#turn
      .then(act)
      .catch((error: unknown) => this.#refuse(error instanceof Error ? error.message : String(error)));
    this.#turn = turn;
    return turn;
  }

  async #read(): Promise<ReloadResult> {
    const settings = this.#parts.source?.read();
    if (settings === undefined || settings.kind === 'nothing') return this.#refuse('there is nothing to read again');
    if (settings.kind === 'mistakes') return this.#refuse(formatMistakes(settings.mistakes));
    const result = await this.#take(settings);
    if (result.kind !== 'applied') return result;
    for (const warning of settings.warnings) this.#parts.logger.warn(formatWarnings([warning]));
    return result;
  }

  async #take(effective: Effective): Promise<ReloadResult> {
    const { logger, listen, wallClock, apply, onUnchanged } = this.#parts;
    const { compareConfigs } = await import('../config/load/config-diff.ts'); // most never need it
    const changes = compareConfigs(this.#current, effective);
    const stuck = changes.filter(({ needsRestart }) => needsRestart);
    if (stuck.length > 0) return this.#refuse(`needs a restart: ${stuck.map(({ path }) => path).join(', ')}`);
    const certificates = digestCertificates(effective.config);
    const renewed = [...certificates].filter(([path, digest]) => (this.#certificates.get(path) ?? digest) !== digest);
    const changed = [...changes.map(({ path }) => path), ...renewed.map(([path]) => path)];
    if (changed.length === 0) {
      logger.debug('configuration read again: it says the same');
      this.#note(wallClock(), undefined);
      onUnchanged?.();
      return { kind: 'unchanged' };
    }
    await apply(effective.config);
    this.#current = effective;
    this.#certificates = certificates;
    this.#loadedAt = wallClock();
    this.#note(this.#loadedAt, undefined);
    listen({ type: 'reload', ok: true, changed });
    return { kind: 'applied', changed };
  }

  #refuse(problem: string): ReloadResult {
    const { listen, wallClock } = this.#parts;
    this.#note(wallClock(), problem);
    listen({ type: 'reload', ok: false, problem });
    return { kind: 'refused', problem };
  }

  #note(at: number, problem: string | undefined): void {
    this.#last = { at, ok: problem === undefined, problem };
    if (problem === undefined) this.#readAt = at;
  }
}

export function controlsOf(reloads: Reloads): ReloadControls {
  return {
    reload: () => reloads.reload(),
    apply: (effective) => reloads.apply(effective),
    lastReload: () => reloads.last,
    loadedAt: () => reloads.loadedAt,
    validateConfig: (text) => reloads.validate(text),
  };
}

/** Where the configuration did not come from files: it reads those that come with the program. */
const NO_SOURCE = new ConfigSource({}, { env: {}, readFile: (path) => readFileSync(path, 'utf8') });

/** Of what the files of upstreams' certificates hold, by where they are named: they may change where no setting does. */
function digestCertificates({ upstreams }: Config): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(upstreams).map(([name, { tls }]) => {
      const text = JSON.stringify(readClientTls(tls));
      return [`upstreams.${name}.tls`, createHash('sha256').update(text).digest('base64')];
    }),
  );
}
