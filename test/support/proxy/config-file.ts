import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atEnd } from '../at-end.ts';

/** Writes a configuration to a file that is removed when the test ends. Returns its path. */
export function writeConfigFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  atEnd(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'tidegate.yaml');
  writeFileSync(file, text);
  return file;
}
