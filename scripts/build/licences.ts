import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'rolldown';

/**
 * Writes the licences of bundled packages beside the bundle, as most of them require.
 * @param copied folders of packages that are copied without being bundled
 */
export function licences(file: string, copied: readonly string[]): Plugin {
  return {
    name: 'licences',
    generateBundle(_, bundle) {
      const folders = new Set<string>(copied);
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== 'chunk') continue;
        for (const id of chunk.moduleIds) {
          const folder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0];
          if (folder !== undefined) folders.add(folder);
        }
      }
      const source = [...folders]
        .map(describe)
        .toSorted()
        .join(`\n${'-'.repeat(72)}\n\n`);
      this.emitFile({ type: 'asset', fileName: file, source });
    },
  };
}

/** @throws if a package has neither a licence text nor a licence name */
function describe(folder: string): string {
  const manifest: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const [name, version, license] = ['name', 'version', 'license'].map((key) => field(manifest, key));
  const text = readdirSync(folder).find((entry) => /^licen[cs]e(\.(md|txt))?$/i.test(entry));
  if (text === undefined && license === '') throw new Error(`${name} has no licence`);
  const terms = text === undefined ? '' : `\n${readFileSync(join(folder, text), 'utf8').trim()}\n`;
  return `${name} ${version}: ${license}\n${terms}`;
}

function field(manifest: unknown, key: string): string {
  const value: unknown = manifest instanceof Object ? Reflect.get(manifest, key) : undefined;
  return typeof value === 'string' ? value : '';
}
