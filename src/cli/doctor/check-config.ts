import type { Mistake, Path } from '../../config/load/mistakes.ts';
import { formatPath } from '../../config/load/mistakes.ts';
import type { ServeSettings } from '../../config/load/serve-settings.ts';
import type { DoctorFinding } from './doctor-finding.ts';
import { ok, problem, skipped, warning } from './doctor-finding.ts';

export type ValidSettings = Extract<ServeSettings, { readonly kind: 'ok' }>;

/** Every mistake and every warning of the configuration. */
export function checkConfig(settings: ServeSettings, user: string): DoctorFinding[] {
  switch (settings.kind) {
    case 'nothing':
      return [
        skipped(
          'config',
          'no configuration',
          'neither --config, TIDEGATE_CONFIG, --upstream nor TIDEGATE_UPSTREAM is given: only this machine and a running Tidegate are checked',
        ),
      ];
    case 'mistakes':
      return settings.mistakes.map((mistake) =>
        problem('config', placeOf(mistake), describe(mistake), remedyOf(mistake, user)),
      );
    case 'ok':
      return [
        ok('config', settings.file ?? 'flags and variables', 'valid'),
        ...settings.warnings.map((each) =>
          warning('config', placeOf(each), describe(each), 'Change the setting, unless its effect is intended.'),
        ),
      ];
  }
}

/** The setting with its position; without it, if a default or a preset sets it. */
export function placeOfSetting({ isWritten, positionOf }: ValidSettings, path: Path): string {
  const name = formatPath(path);
  return isWritten(path) ? placeOf({ ...positionOf(path), path: name }) : name;
}

function placeOf({ file, line, column, path }: Pick<Mistake, 'file' | 'line' | 'column' | 'path'>): string {
  const position = line === undefined ? file : `${file}:${line}:${column ?? 1}`;
  return path === '' ? position : `${position} ${path}`;
}

function describe({ message, suggestion }: Mistake): string {
  return suggestion === undefined ? message : `${message} (did you mean ${suggestion}?)`;
}

function remedyOf({ message, suggestion, file, line }: Mistake, user: string): string {
  if (message.startsWith('unknown key')) {
    const correction = suggestion === undefined ? 'Remove the key' : `Write ${suggestion} in its place`;
    return `${correction}, or install the version of Tidegate that the file was written for: CHANGELOG.md lists the keys that each version adds. \`tidegate schema\` lists those of this version.`;
  }
  if (message.includes('permission denied')) return `Let the user ${user} read the file and enter its folders.`;
  if (message.includes('no such file')) return 'Create the file, or correct its path.';
  if (suggestion !== undefined) return `Write ${suggestion} in its place.`;
  return line === undefined ? `Correct ${file}.` : 'Correct the setting. `tidegate schema` lists what is allowed.';
}
