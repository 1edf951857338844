/**
 * Draws the backoff strategies, and what commands of Tidegate draw with `--svg`.
 *
 *     npm run draw:commands                        writes the drawings of docs/ that docs/backoff.md and simulations have
 *     npm run draw:commands -- --only simulator    some of them
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { drawBackoffs } from '../../src/cli/backoff/draw-backoffs.ts';
import { makeBackOff, strategyNames } from '../../src/core/backoff/strategies.ts';
import { COMMAND_DRAWINGS, drawByCommand } from '../support/documents/command-drawings.ts';

const { values } = parseArgs({
  options: { only: { type: 'string', default: '.' }, out: { type: 'string', default: 'docs' } },
});
const wanted = new RegExp(values.only);

for (const strategy of strategyNames) {
  await write(`backoff/${strategy}`, () => drawBackoffs([makeBackOff({ strategy })], undefined));
}
for (const [name, line] of Object.entries(COMMAND_DRAWINGS)) await write(name, () => drawByCommand(line));

async function write(name: string, draw: () => string | Promise<string>): Promise<void> {
  if (!wanted.test(name)) return;
  const file = join(values.out, `${name}.svg`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, await draw());
  console.log(file);
}
