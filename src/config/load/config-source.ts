import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installed } from '../../installation.ts';
import type { Mistake } from './mistakes.ts';
import type { ServeFlags, Settings } from './serve-settings.ts';
import { resolveSettings } from './serve-settings.ts';
import type { Surroundings } from './substitute.ts';

export type Validation =
  | { readonly kind: 'valid'; readonly warnings: readonly Mistake[] }
  | { readonly kind: 'mistakes'; readonly mistakes: readonly Mistake[] };

/** What a text is called that somebody else wants to know about. */
const GIVEN = 'config';

/** Where the settings of this process come from, to be read as often as they change. Remembers which files were asked for. */
export class ConfigSource {
  readonly #flags: ServeFlags;
  readonly #surroundings: Surroundings;
  #files: ReadonlySet<string> = new Set();

  constructor(flags: ServeFlags, surroundings: Surroundings) {
    this.#flags = flags;
    this.#surroundings = surroundings;
  }

  /** Of the last reading: the file, and those that it names, whether or not they could be read. */
  get files(): ReadonlySet<string> {
    return this.#files;
  }

  /** Never throws. */
  read(): Settings {
    const { env, readFile } = this.#surroundings;
    const files = new Set<string>();
    const settings = resolveSettings(this.#flags, {
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
   * Whether this process could go on with such a file. Of the files that it names, those are read that the configuration in
   * effect names too: nobody learns by asking what else there is.
   */
  validate(text: string): Validation {
    const { env, readFile } = this.#surroundings;
    const settings = resolveSettings(
      { ...this.#flags, config: GIVEN },
      {
        env,
        readFile: (path) => {
          if (path === GIVEN) return text;
          if (this.#files.has(path) || isPreset(path)) return readFile(path);
          throw Object.assign(new Error(NOT_READ), { code: NOT_READ });
        },
      },
    );
    if (settings.kind === 'ok') return { kind: 'valid', warnings: settings.warnings };
    return { kind: 'mistakes', mistakes: settings.kind === 'mistakes' ? settings.mistakes : [] };
  }
}

/** One that comes with the program. */
function isPreset(path: string): boolean {
  return path === resolve(path) && path.startsWith(fileURLToPath(installed('config/providers/')));
}

const NOT_READ = 'only files that the configuration in effect names are read here';
