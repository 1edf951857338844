// Prints the notes of a release: its section of CHANGELOG.md. Fails if there is none, or if it is empty.
//
//   node scripts/release/notes.ts X.Y.Z

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { releaseNotes } from './release-notes.ts';

const [version = ''] = process.argv.slice(2);
const notes = releaseNotes(readFileSync(join(import.meta.dirname, '../../CHANGELOG.md'), 'utf8'), version);
if (notes.kind === 'found') {
  console.log(notes.text);
} else {
  console.error(notes.message);
  process.exitCode = 1;
}
