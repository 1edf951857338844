/**
 * The cost of many clients: memory, decisions, garbage collection pauses, and the queue.
 *
 *     npm run bench:policy                                 takes minutes; exits with 1 if a goal is missed
 *     npm run bench:policy -- --smoke                      takes a moment, and only checks the counts
 *     npm run bench:policy -- --json figures.json --markdown docs/performance.md
 */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { writeSection } from '../control/section.ts';
import { toMarkdown, toText } from '../control/table.ts';
import { findFaults, judge } from './goals.ts';
import type { PartFigures, Part } from './parts.ts';
import { planParts } from './plan.ts';
import { tablesOf } from './tables.ts';

const { smoke, json, markdown } = parseArgs({
  options: {
    smoke: { type: 'boolean', default: false },
    json: { type: 'string' },
    markdown: { type: 'string' },
  },
}).values;

const PROCESS = fileURLToPath(new URL('process.ts', import.meta.url));

// Sequentially, because parallel runs would compete for caches.
const all: PartFigures[] = [];
for (const part of planParts(smoke)) all.push(await run(part));

const faults = findFaults(all);
for (const fault of faults) console.log(`WRONG: ${fault}`);
if (smoke) {
  console.log(`${all.length} short runs, ${faults.length} faults`);
} else {
  const tables = tablesOf(all);
  const caption = `Node ${process.version}, one core of ${availableParallelism()} × ${cpus()[0]?.model ?? 'an unknown processor'}.`;
  for (const table of tables) console.log(toText(table));
  console.log(`${caption}\n`);
  const judged = judge(all);
  for (const { goal, isMet } of judged) console.log(`${isMet ? 'met' : 'MISSED'}: ${goal}`);
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(all, undefined, 1)}\n`);
  if (markdown !== undefined) {
    writeSection(markdown, 'many-clients', `\n${[...tables.map(toMarkdown), caption].join('\n')}\n`);
  }
  if (judged.some(({ isMet }) => !isMet)) process.exitCode = 1;
}
if (faults.length > 0) process.exitCode = 1;

async function run(part: Part): Promise<PartFigures> {
  const { stdout } = await promisify(execFile)(process.execPath, [PROCESS, JSON.stringify(part)]);
  return JSON.parse(stdout) as PartFigures;
}
