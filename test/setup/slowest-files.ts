// Prints the files that took longest, because the whole run takes as long as its slowest files make it.

import { relative } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';

const COUNT = 10;
/** A run of some quick files needs no list. */
const LEAST_MS = 60_000;

export default class SlowestFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const files = modules.map((file) => ({ path: relative('', file.moduleId), ms: file.diagnostic().duration }));
    if (files.reduce((sum, { ms }) => sum + ms, 0) < LEAST_MS) return;
    const slowest = files.toSorted((a, b) => b.ms - a.ms).slice(0, COUNT);
    console.log(`The ${slowest.length} slowest files:`);
    for (const { path, ms } of slowest) console.log(`${(ms / 1000).toFixed(1).padStart(7)} s  ${path}`);
  }
}
