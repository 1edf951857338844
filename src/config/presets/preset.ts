/** The presets that come with the program, found from wherever it is run. */
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { installed } from '../../installation.ts';
import { layBeneath } from './preset-merge.ts';
import { isMapping, valueAt } from '../load/schema-issues.ts';
import type { Mistake, Path } from '../load/mistakes.ts';
import type { Provider } from './providers.ts';
import { isProvider } from './providers.ts';
import type { Drafted } from '../load/read-document.ts';
import type { Surroundings } from '../load/substitute.ts';
import { explain } from '../load/substitute.ts';
import { readTree } from '../load/yaml-tree.ts';

/** What is known of a provider. */
export interface Preset {
  /** As `upstreams.NAME` says it. */
  readonly settings: object;
  /** What of it may not be so. */
  readonly uncertain: readonly Doubt[];
  /** What a user has to see to, because no setting can, in sentences. */
  readonly careful: readonly string[];
}

/** A setting that may not be so, or whose absence says that nothing is known. */
export interface Doubt {
  /** As `upstreams.NAME` has it: `rateLimit.initialRate`; of a list, by the name of its item, `limits.endpoint.initialRate`. */
  readonly about: string;
  /** In a sentence. */
  readonly because: string;
}

const PresetSchema = z.looseObject({
  uncertain: z.record(z.string(), z.string()).prefault({}),
  careful: z.array(z.string()).prefault([]),
});

/** Nothing in a preset stands for anything else. */
const NOWHERE: Surroundings = {
  env: {},
  readFile: () => {
    throw new Error('a preset reads no files');
  },
};

export function readPreset(
  provider: Provider,
  readFile: Surroundings['readFile'],
): Preset | { readonly problem: string } {
  const file = fileURLToPath(installed(`config/providers/${provider}.yaml`));
  let text: string;
  try {
    text = readFile(file);
  } catch (error) {
    return { problem: `its preset ${file} cannot be read: ${explain(error)}` };
  }
  const { value, mistakes } = readTree(text, file, NOWHERE);
  const parsed = PresetSchema.safeParse(value);
  if (mistakes.length > 0 || !parsed.success) return { problem: `its preset ${file} is broken` };
  const { uncertain, careful, ...settings } = parsed.data;
  const doubts = Object.entries(uncertain).map(([about, because]) => ({ about, because }));
  return { settings, uncertain: doubts, careful };
}

/**
 * Lays the preset of the `provider` that a mapping names beneath it.
 * @param path of the mapping
 * @param keys those of the preset that have a meaning there; all unless given
 */
export function layPreset(
  { root, places }: Drafted,
  path: Path,
  readFile: Surroundings['readFile'],
  keys?: readonly string[],
): Mistake[] {
  const written = valueAt(root, path);
  const provider = valueAt(written, ['provider']);
  // What else is wrong here, the schema says.
  if (!isMapping(written) || !isProvider(provider)) return [];
  const named = [...path, 'provider'];
  const preset = readPreset(provider, readFile);
  if ('problem' in preset) return [places.locate({ path: named, at: 'value', message: preset.problem })];
  const settings = Object.entries(preset.settings).filter(([key]) => keys?.includes(key) ?? true);
  for (const laid of layBeneath(written, Object.fromEntries(settings))) places.lend([...path, ...laid], named);
  return [];
}
