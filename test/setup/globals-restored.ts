// Enforces that the timers, the clock and fetch are the real ones: unit tests share a process, and one file's fakes would reach the next.

import { afterAll, beforeAll } from 'vitest';

const NAMES = ['setTimeout', 'clearTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'Date', 'fetch'] as const;
const FIRST = Symbol.for('tidegate.test.globals');

// This module runs again for each file; the first run of the process sees the real ones.
const real =
  (Reflect.get(globalThis, FIRST) as readonly unknown[] | undefined) ?? NAMES.map((name) => globalThis[name]);
Reflect.set(globalThis, FIRST, real);

function requireReal(where: string): void {
  const replaced = NAMES.filter((name, index) => globalThis[name] !== real[index]);
  if (replaced.length > 0) throw new Error(`${replaced.join(', ')} not restored by ${where}`);
}

// Vitest may undo a spy on a fake timer after the file has ended, so that the next file gets the fake.
beforeAll(() => requireReal('a file before this one'));
afterAll(() => requireReal('this file'));
