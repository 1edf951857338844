/** The presets that are installed with the program. */
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { installedFile } from '../../installation.ts';
import { mergePreset } from './preset-merge.ts';
import { isMapping, valueAt } from '../values/plain-object.ts';
import type { Mistake, Path } from '../load/mistakes.ts';
import type { Provider } from './providers.ts';
import { isProvider } from './providers.ts';
import type { RawDocument } from '../load/read-document.ts';
import type { ConfigEnvironment } from '../load/substitute.ts';
import { describeFileError } from '../load/substitute.ts';
import { parseYamlTree } from '../load/yaml-tree.ts';

/** The known settings of a provider. */
export interface Preset {
  /** As in `upstreams.NAME`. */
  readonly settings: object;
  /** Settings that may be wrong. */
  readonly uncertain: readonly UncertainSetting[];
  /** What users have to take care of themselves, because no setting can: sentences. */
  readonly careful: readonly string[];
}

/** A setting that may be wrong, or that is absent because nothing is known. */
export interface UncertainSetting {
  /** As `upstreams.NAME` has it: `rateLimit.initialRate`; of a list, by the name of its item, `limits.endpoint.initialRate`. */
  readonly about: string;
  /** One sentence. */
  readonly because: string;
}

const PresetSchema = z.looseObject({
  uncertain: z.record(z.string(), z.string()).prefault({}),
  careful: z.array(z.string()).prefault([]),
});

/** A preset contains no references. */
const EMPTY_ENVIRONMENT: ConfigEnvironment = {
  env: {},
  readFile: () => {
    throw new Error('a preset reads no files');
  },
};

export function readPreset(
  provider: Provider,
  readFile: ConfigEnvironment['readFile'],
): Preset | { readonly problem: string } {
  const file = fileURLToPath(installedFile(`config/providers/${provider}.yaml`));
  let text: string;
  try {
    text = readFile(file);
  } catch (error) {
    return { problem: `its preset ${file} cannot be read: ${describeFileError(error)}` };
  }
  const tree = parseYamlTree(text, file, EMPTY_ENVIRONMENT);
  const parsed = PresetSchema.safeParse(tree.kind === 'yaml' ? tree.value : undefined);
  if (tree.mistakes.length > 0 || !parsed.success) return { problem: `its preset ${file} is invalid` };
  const { uncertain, careful, ...settings } = parsed.data;
  const uncertainSettings = Object.entries(uncertain).map(([about, because]) => ({ about, because }));
  return { settings, uncertain: uncertainSettings, careful };
}

/**
 * Merges the preset of the `provider` that a mapping names beneath it.
 * @param path of the mapping
 * @param keys the keys of the preset to merge; all unless given
 */
export function applyPreset(
  { root, sourceMap }: RawDocument,
  path: Path,
  readFile: ConfigEnvironment['readFile'],
  keys?: readonly string[],
): Mistake[] {
  const written = valueAt(root, path);
  const provider = valueAt(written, ['provider']);
  // The schema reports anything else.
  if (!isMapping(written) || !isProvider(provider)) return [];
  const providerPath = [...path, 'provider'];
  const preset = readPreset(provider, readFile);
  if ('problem' in preset) return [sourceMap.locate({ path: providerPath, at: 'value', message: preset.problem })];
  const settings = Object.entries(preset.settings).filter(([key]) => keys?.includes(key) ?? true);
  for (const added of mergePreset(written, Object.fromEntries(settings))) {
    sourceMap.setPresetOrigin([...path, ...added], providerPath);
  }
  return [];
}
