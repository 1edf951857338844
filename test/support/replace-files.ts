/** Replaces a file repeatedly until the process is killed. */
import { writeFileAtomically } from '../../src/store/persistence/state-file.ts';

const [file = ''] = process.argv.slice(2);
for (let n = 0; ; n += 1) {
  await writeFileAtomically(file, `${JSON.stringify({ n, filler: String(n % 10).repeat(300_000), again: n })}\n`);
  if (n === 0) process.send?.('begun');
}
