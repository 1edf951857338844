// Prints the version of a release tag. Fails if package.json or package-lock.json has another one.
//
//   node scripts/release/check-version.ts vX.Y.Z

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** @throws if the file has no version */
function versionIn(file: string): string {
  const content: unknown = JSON.parse(readFileSync(join(ROOT, file), 'utf8'));
  const version: unknown = content instanceof Object ? Reflect.get(content, 'version') : undefined;
  if (typeof version !== 'string') throw new TypeError(`${file} has no version`);
  return version;
}

const [tag = ''] = process.argv.slice(2);
const version = /^v(\d+\.\d+\.\d+)$/.exec(tag)?.[1];
const others = ['package.json', 'package-lock.json'].filter((file) => versionIn(file) !== version);
if (version === undefined) {
  console.error(`usage: node scripts/release/check-version.ts vX.Y.Z (not ${JSON.stringify(tag)})`);
  process.exitCode = 2;
} else if (others.length > 0) {
  const found = others.map((file) => `${file} has ${versionIn(file)}`).join(', ');
  console.error(
    `The tag is ${tag}, but ${found}. Run \`npm version --no-git-tag-version ${version}\`, and tag that commit.`,
  );
  process.exitCode = 1;
} else {
  console.log(version);
}
