// Lists the advisories on the packages that the program contains, as npm's registry knows them. Fails if
// docs/security/tidegate.openvex.json has no statement on one of them.
//
//   node scripts/release/advisories.ts

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { withProductionTree } from './production-tree.ts';
import { findAdvisories, statedAdvisories } from './stated-advisories.ts';

const vex: unknown = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../docs/security/tidegate.openvex.json'), 'utf8'),
);
const stated = statedAdvisories(vex);
// npm exits with 1 if it finds an advisory.
const { stdout, stderr } = withProductionTree((npm) => npm('audit', '--json'));
const advisories = findAdvisories(stdout);
if (advisories === undefined) {
  console.error(`npm audit failed: ${stdout}${stderr}`);
  process.exit(2);
}
for (const { id, name, range, title } of advisories) {
  const statement = stated.get(id);
  console.log(`${id} ${name} ${range}: ${title} (${statement ?? 'no statement'})`);
}
const missing = advisories.filter(({ id }) => !stated.has(id));
if (missing.length > 0) {
  console.error(
    `${missing.map(({ id }) => id).join(', ')}: upgrade the package, or add a statement to docs/security/tidegate.openvex.json. If there is one for its CVE, add the id to its aliases.`,
  );
  process.exitCode = 1;
}
