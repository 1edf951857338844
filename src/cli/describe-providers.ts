import { readPreset } from '../config/preset.ts';
import type { Config } from '../config/schema.ts';
import type { Surroundings } from '../config/substitute.ts';

/** What the presets of upstreams do not know and cannot do, in lines. */
export function describeProviders({ upstreams }: Config, readFile: Surroundings['readFile']): string[] {
  return Object.entries(upstreams).flatMap(([name, { provider }]) => {
    const preset = provider === undefined ? undefined : readPreset(provider, readFile);
    if (preset === undefined || 'problem' in preset) return [];
    return [
      `${name}: where nothing is written, as the preset ${provider} has it`,
      ...preset.uncertain.map((sentence) => `  uncertain: ${sentence}`),
      ...preset.careful.map((sentence) => `  careful: ${sentence}`),
    ];
  });
}
