import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installedFile } from '../../installation.ts';
import type { Mistake } from './mistakes.ts';
import type { ServeFlags, ServeSettings } from './serve-settings.ts';
import { resolveServeSettings } from './serve-settings.ts';
import type { ConfigEnvironment } from './substitute.ts';

export type ConfigValidation =
  | { readonly kind: 'valid'; readonly warnings: readonly Mistake[] }
  | { readonly kind: 'mistakes'; readonly mistakes: readonly Mistake[] };

/** The name of a text that is validated, in its messages. */
const VALIDATED_FILE = 'config';

/** Where the settings of this process come from; can be read again. Remembers which files were read. */
export class ConfigSource {
  readonly #flags: ServeFlags;
  readonly #environment: ConfigEnvironment;
  #files: ReadonlySet<string> = new Set();

  constructor(flags: ServeFlags, environment: ConfigEnvironment) {
    this.#flags = flags;
    this.#environment = environment;
  }

  /** The files of the last read: the configuration and those that it names, readable or not. */
  get files(): ReadonlySet<string> {
    return this.#files;
  }

  /** Never throws. */
  read(): ServeSettings {
    const { env, readFile } = this.#environment;
    const files = new Set<string>();
    const settings = resolveServeSettings(this.#flags, {
      env,
      readFile: (path) => {
        files.add(path);
        return readFile(path);
      },
    });
    this.#files = files;
    return settings;
  }

  /**
   * Validates a configuration file for this process. Reads only the files that the active configuration names too, so that
   * a caller cannot probe the file system.
   */
  validate(text: string): ConfigValidation {
    const { env, readFile } = this.#environment;
    const settings = resolveServeSettings(
      { ...this.#flags, config: VALIDATED_FILE },
      {
        env,
        readFile: (path) => {
          if (path === VALIDATED_FILE) return text;
          if (this.#files.has(path) || isPresetFile(path)) return readFile(path);
          throw Object.assign(new Error(NOT_ALLOWED), { code: NOT_ALLOWED });
        },
      },
    );
    if (settings.kind === 'ok') return { kind: 'valid', warnings: settings.warnings };
    return { kind: 'mistakes', mistakes: settings.kind === 'mistakes' ? settings.mistakes : [] };
  }
}

/** True for a preset that is installed with the program. */
function isPresetFile(path: string): boolean {
  return path === resolve(path) && path.startsWith(fileURLToPath(installedFile('config/providers/')));
}

const NOT_ALLOWED = 'only files that the active configuration names are read here';
