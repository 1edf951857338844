// Enforces that sockets, servers, timers, child processes, signal handlers and variables of a file end with it: the files of this
// project share a process, and what one leaves would disturb the next.

import { afterAll, beforeAll } from 'vitest';
import { pause } from '../support/pause.ts';

/** The other side of a connection may close it later, and clients of Redis give up after seconds. */
const PATIENCE = 15_000;

/**
 * Vitest reports results by a timer of 100 ms, which often runs as a file starts. A timer that the file leaves would be taken for that
 * one.
 */
const REPORTED_WITHIN = 1000;

let before: ReadonlySet<string>;
let resources: readonly string[];
beforeAll(async () => {
  before = readState();
  const until = performance.now() + REPORTED_WITHIN;
  resources = process.getActiveResourcesInfo();
  while (resources.includes('Timeout') && performance.now() < until) {
    await pause(20);
    resources = process.getActiveResourcesInfo();
  }
});

afterAll(async () => {
  const until = performance.now() + PATIENCE;
  let left = newResources();
  while (left.length > 0 && performance.now() < until) {
    await pause(20);
    left = newResources();
  }
  if (left.length > 0) throw new Error(`left open by this file: ${left.join(', ')}`);
  const after = readState();
  const changed = [...after].filter((entry) => !before.has(entry));
  const gone = [...before].filter((entry) => !after.has(entry));
  const names = [...changed, ...gone].map((entry) => entry.replace(/=.*/s, '')); // a value may be a secret
  if (names.length > 0) throw new Error(`not restored by this file: ${[...new Set(names)].join(', ')}`);
}, PATIENCE + 5000);

/** The kinds of resources that keep the process alive and did not at the start of the file. */
function newResources(): string[] {
  const known = [...resources];
  return process.getActiveResourcesInfo().filter((kind) => {
    const index = known.indexOf(kind);
    if (index !== -1) known.splice(index, 1);
    return index === -1;
  });
}

/** The listeners of the process, its variables and its folder. */
function readState(): Set<string> {
  const listeners = process.eventNames().map((name) => `${process.listenerCount(name)} listeners of ${String(name)}`);
  const variables = Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST'));
  return new Set([
    ...listeners,
    ...variables.map(([name, value]) => `${name}=${value}`),
    `the folder ${process.cwd()}`,
  ]);
}
