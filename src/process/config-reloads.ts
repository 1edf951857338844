/** Reloads of the configuration, and their results. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import type { EffectiveConfiguration } from '../config/load/config-diff.ts';
import type { ConfigValidation } from '../config/load/config-source.ts';
import { ConfigSource } from '../config/load/config-source.ts';
import { formatMistakes, formatWarnings } from '../config/load/mistakes.ts';
import type { Config } from '../config/schema/config-schema.ts';
import type { EventSink } from '../core/events/proxy-events.ts';
import { readClientTls } from '../http/tls/client-tls.ts';
import type { ReloadResult } from './reload-result.ts';

export type { ReloadResult } from './reload-result.ts';

/** The result of the last reload; times in milliseconds of the epoch. */
export interface LastReload {
  readonly at: number;
  readonly ok: boolean;
  readonly problem: string | undefined;
}

/** Reload operations on a process. */
export interface ReloadControls {
  /** Reads the configuration from its source again, and puts it in effect. Never rejects. */
  reload(): Promise<ReloadResult>;
  /** Puts a configuration in effect that was read elsewhere. Never rejects. */
  apply(effective: EffectiveConfiguration): Promise<ReloadResult>;
  /** The result of the last reload; undefined before the first one. */
  lastReload(): LastReload | undefined;
  /** When the current configuration took effect, in milliseconds of the epoch. */
  loadedAt(): number;
  /** As `ConfigSource.validate`. Changes nothing, and never throws. */
  validateConfig(text: string): ConfigValidation;
}

export interface ConfigReloadsParts {
  /** Undefined: the configuration cannot be reloaded. */
  readonly source: ConfigSource | undefined;
  readonly logger: Logger;
  readonly listen: EventSink;
  readonly wallClock: () => number;
  /** Puts it in effect, completely or not at all. @throws the error that prevents it */
  readonly apply: (config: Config) => void | Promise<void>;
  /** Called when a reload finds no changes. */
  readonly onUnchanged?: () => void;
}

/** Reloads the configuration, one reload at a time, and puts it in effect if it is valid and has changed. */
export class ConfigReloads {
  readonly #parts: ConfigReloadsParts;
  #current: EffectiveConfiguration;
  #certificates: ReadonlyMap<string, string>;
  #last: LastReload | undefined;
  #loadedAt: number;
  #readAt: number;
  /** Never rejects. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(current: EffectiveConfiguration, parts: ConfigReloadsParts) {
    this.#current = current;
    this.#parts = parts;
    this.#certificates = digestCertificates(current.config);
    this.#loadedAt = parts.wallClock();
    this.#readAt = this.#loadedAt;
  }

  /** The configuration in effect. */
  get current(): EffectiveConfiguration {
    return this.#current;
  }

  get last(): LastReload | undefined {
    return this.#last;
  }

  /** When the current configuration took effect, in milliseconds of the epoch. */
  get loadedAt(): number {
    return this.#loadedAt;
  }

  /** For metrics. */
  get readStatus(): { readonly ok: boolean; readonly readAt: number } {
    return { ok: this.#last?.ok ?? true, readAt: this.#readAt };
  }

  /** Reads the configuration from its source. Never rejects. */
  reload(): Promise<ReloadResult> {
    return this.#enqueue(() => this.#readAndApply());
  }

  /** Applies a configuration that was read elsewhere. Never rejects. */
  apply(effective: EffectiveConfiguration): Promise<ReloadResult> {
    return this.#enqueue(() => this.#applyIfChanged(effective));
  }

  validate(text: string): ConfigValidation {
    return (this.#parts.source ?? NO_SOURCE).validate(text);
  }

  #enqueue(reload: () => Promise<ReloadResult>): Promise<ReloadResult> {
    const turn = this.#queue
      .then(reload)
      .catch((error: unknown) => this.#refuse(error instanceof Error ? error.message : String(error)));
    this.#queue = turn;
    return turn;
  }

  async #readAndApply(): Promise<ReloadResult> {
    const settings = this.#parts.source?.read();
    if (settings === undefined || settings.kind === 'nothing') return this.#refuse('no configuration file to reload');
    if (settings.kind === 'mistakes') return this.#refuse(formatMistakes(settings.mistakes));
    const result = await this.#applyIfChanged(settings);
    if (result.kind !== 'applied') return result;
    for (const warning of settings.warnings) this.#parts.logger.warn(formatWarnings([warning]));
    return result;
  }

  async #applyIfChanged(effective: EffectiveConfiguration): Promise<ReloadResult> {
    const { logger, listen, wallClock, apply, onUnchanged } = this.#parts;
    const { diffConfigs } = await import('../config/load/config-diff.ts'); // loaded on the first reload only
    const changes = diffConfigs(this.#current, effective);
    const needingRestart = changes.filter(({ needsRestart }) => needsRestart);
    if (needingRestart.length > 0) {
      return this.#refuse(`needs a restart: ${needingRestart.map(({ path }) => path).join(', ')}`);
    }
    const certificates = digestCertificates(effective.config);
    const renewed = [...certificates].filter(([path, digest]) => (this.#certificates.get(path) ?? digest) !== digest);
    const changed = [...changes.map(({ path }) => path), ...renewed.map(([path]) => path)];
    if (changed.length === 0) {
      logger.debug('configuration unchanged: nothing to reload');
      this.#note(wallClock(), undefined);
      onUnchanged?.();
      return { kind: 'unchanged' };
    }
    await apply(effective.config);
    this.#current = effective;
    this.#certificates = certificates;
    this.#loadedAt = wallClock();
    this.#note(this.#loadedAt, undefined);
    const identifyingWrites = changes.filter((each) => each.changesWriteIdentity).map(({ path }) => path);
    listen({ type: 'reload', ok: true, changed, identifyingWrites });
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

export function reloadControls(reloads: ConfigReloads): ReloadControls {
  return {
    reload: () => reloads.reload(),
    apply: (effective) => reloads.apply(effective),
    lastReload: () => reloads.last,
    loadedAt: () => reloads.loadedAt,
    validateConfig: (text) => reloads.validate(text),
  };
}

/** For a process whose configuration did not come from a file: validates against the installed files only. */
const NO_SOURCE = new ConfigSource({}, { env: {}, readFile: (path) => readFileSync(path, 'utf8') });

/** Digests of the certificate files of upstreams, by path: their contents may change while no setting does. */
function digestCertificates({ upstreams }: Config): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(upstreams).map(([name, { tls }]) => {
      const text = JSON.stringify(readClientTls(tls));
      return [`upstreams.${name}.tls`, createHash('sha256').update(text).digest('base64')];
    }),
  );
}
