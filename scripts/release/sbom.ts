// Writes the software bill of materials (CycloneDX) of the packages that the program contains.
//
//   node scripts/release/sbom.ts FILE

import { writeFileSync } from 'node:fs';
import { outputOf, withProductionTree } from './production-tree.ts';

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error('usage: node scripts/release/sbom.ts FILE');
  process.exit(2);
}
withProductionTree((npm) => {
  writeFileSync(file, outputOf(npm('sbom', '--offline', '--sbom-format=cyclonedx', '--sbom-type=application')));
});
