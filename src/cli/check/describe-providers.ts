import { encodeEffective } from '../../config/load/effective-config.ts';
import { isMapping, valueAt } from '../../config/load/schema-issues.ts';
import type { Path } from '../../config/load/mistakes.ts';
import type { Doubt } from '../../config/presets/preset.ts';
import { readPreset } from '../../config/presets/preset.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import type { Surroundings } from '../../config/load/substitute.ts';

/** What a preset is not sure of, where it is in effect. */
export interface DoubtHere extends Doubt {
  readonly upstream: string;
  /** Of the setting; undefined where there is none, because nothing is known. */
  readonly path: Path | undefined;
}

/** What presets are not sure of, but for what is written: that is no preset's any more. */
export function findDoubts(
  config: Config,
  readFile: Surroundings['readFile'],
  isWritten: (path: Path) => boolean,
): DoubtHere[] {
  const effective = encodeEffective(config);
  return Object.entries(config.upstreams).flatMap(([upstream, { provider }]) => {
    const preset = provider === undefined ? undefined : readPreset(provider, readFile);
    if (preset === undefined || 'problem' in preset) return [];
    return preset.uncertain.flatMap((doubt) => {
      const own = ['upstreams', upstream];
      const { path, list } = locate(effective, own, doubt.about.split('.'));
      if (isWritten([...own, ...doubt.about.split('.')]) || (list !== undefined && isWritten(list))) return [];
      return [{ ...doubt, upstream, path }];
    });
  });
}

/** What the presets of upstreams do not know and cannot do, in lines. */
export function describeProviders(
  { upstreams }: Config,
  readFile: Surroundings['readFile'],
  doubts: readonly DoubtHere[],
): string[] {
  return Object.entries(upstreams).flatMap(([name, { provider }]) => {
    const preset = provider === undefined ? undefined : readPreset(provider, readFile);
    if (preset === undefined || 'problem' in preset) return [];
    return [
      `${name}: where nothing is written, as the preset ${provider} has it`,
      ...doubts
        .filter(({ upstream }) => upstream === name)
        .map(
          ({ about, because, path }) => `  uncertain: ${about}${path === undefined ? ' (not set)' : ''}: ${because}`,
        ),
      ...preset.careful.map((sentence) => `  careful: ${sentence}`),
    ];
  });
}

/** For `printEffective`: a comment behind each setting that may not be so. */
export function markDoubts(doubts: readonly DoubtHere[]): { readonly path: Path; readonly text: string }[] {
  return doubts.flatMap(({ path }) => (path === undefined ? [] : [{ path, text: 'uncertain' }]));
}

/** Items of a list go by their names. `list`: the outermost list on the way, which is one value. */
function locate(
  root: unknown,
  from: Path,
  steps: readonly string[],
): { readonly path: Path | undefined; readonly list: Path | undefined } {
  const path = [...from];
  let list: Path | undefined;
  for (const step of steps) {
    const holder = valueAt(root, path);
    if (Array.isArray(holder)) list ??= [...path];
    path.push(
      Array.isArray(holder) ? holder.findIndex((item) => isMapping(item) && valueAt(item, ['name']) === step) : step,
    );
    if (valueAt(root, path) === undefined) return { path: undefined, list };
  }
  return { path, list };
}
