import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'rolldown';

/** Beside the bundle, the licences of those whose work is in it: most ask for no more than that, and for no less. */
export function licences(file: string): Plugin {
  return {
    name: 'licences',
    generateBundle(_, bundle) {
      const folders = new Set<string>();
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

/** @throws where a package has neither a text nor a name of a licence */
function describe(folder: string): string {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Readonly<Record<string, unknown>>;
  const { name, version, license } = manifest;
  const text = readdirSync(folder).find((entry) => /^licen[cs]e(\.(md|txt))?$/i.test(entry));
  if (text === undefined && typeof license !== 'string') throw new Error(`${String(name)} has no licence`);
  const terms = text === undefined ? '' : `\n${readFileSync(join(folder, text), 'utf8').trim()}\n`;
  return `${String(name)} ${String(version)}: ${String(license)}\n${terms}`;
}
