import { encodeConfig } from '../../config/load/effective-config.ts';
import { isMapping, valueAt } from '../../config/values/plain-object.ts';
import type { Path } from '../../config/load/mistakes.ts';
import type { UncertainSetting } from '../../config/presets/preset.ts';
import { readPreset } from '../../config/presets/preset.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import type { ConfigEnvironment } from '../../config/load/substitute.ts';

/** An uncertain setting of a preset that is in effect. */
export interface EffectiveUncertainSetting extends UncertainSetting {
  readonly upstream: string;
  /** Path of the setting; undefined if the preset leaves it unset. */
  readonly path: Path | undefined;
}

/** The uncertain settings of presets that the configuration does not override. */
export function findUncertainSettings(
  config: Config,
  readFile: ConfigEnvironment['readFile'],
  isWritten: (path: Path) => boolean,
): EffectiveUncertainSetting[] {
  const effective = encodeConfig(config);
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

/** Uncertain settings and limitations of the presets in use, one line each. */
export function describeProviders(
  { upstreams }: Config,
  readFile: ConfigEnvironment['readFile'],
  uncertain: readonly EffectiveUncertainSetting[],
): string[] {
  return Object.entries(upstreams).flatMap(([name, { provider }]) => {
    const preset = provider === undefined ? undefined : readPreset(provider, readFile);
    if (preset === undefined || 'problem' in preset) return [];
    return [
      `${name}: unset settings come from the preset ${provider}`,
      ...uncertain
        .filter(({ upstream }) => upstream === name)
        .map(
          ({ about, because, path }) => `  uncertain: ${about}${path === undefined ? ' (not set)' : ''}: ${because}`,
        ),
      ...preset.careful.map((sentence) => `  careful: ${sentence}`),
    ];
  });
}

/** For `formatEffectiveConfig`: a comment after each uncertain setting. */
export function markUncertain(
  uncertain: readonly EffectiveUncertainSetting[],
): { readonly path: Path; readonly text: string }[] {
  return uncertain.flatMap(({ path }) => (path === undefined ? [] : [{ path, text: 'uncertain' }]));
}

/** Resolves a path in which list items go by name. `list` is the outermost list on the path; it is overridden as a whole. */
function locate(
  root: unknown,
  from: Path,
  steps: readonly string[],
): { readonly path: Path | undefined; readonly list: Path | undefined } {
  const path = [...from];
  let list: Path | undefined;
  for (const step of steps) {
    const parent = valueAt(root, path);
    if (Array.isArray(parent)) list ??= [...path];
    path.push(
      Array.isArray(parent) ? parent.findIndex((item) => isMapping(item) && valueAt(item, ['name']) === step) : step,
    );
    if (valueAt(root, path) === undefined) return { path: undefined, list };
  }
  return { path, list };
}
