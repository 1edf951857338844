import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const HERE = 'scripts/lua';

/**
 * SHA-256 over all that goes into the scripts, in hexadecimal.
 * @param sources paths of TypeScript files from the project's folder
 */
export function fingerprint(sources: readonly string[]): string {
  const own = readdirSync(join(ROOT, HERE)).map((name) => `${HERE}/${name}`);
  const hash = createHash('sha256');
  for (const path of [...own, ...sources].toSorted()) {
    hash
      .update(`${path}\n`)
      .update(readFileSync(join(ROOT, path)))
      .update('\n');
  }
  return hash.digest('hex');
}
