/** V8 has no API to read its flags; its traces show concurrent marking, pauses and pretenuring decisions. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SOURCE = fileURLToPath(new URL('../../../src/process/tune-node.ts', import.meta.url));
/** V8 reports thread starts in whole milliseconds. */
const ROUNDED = 2;

/** Shows how V8 marks a live heap of 60 MB, with as much short-lived data. */
function traceMarking(processors: number): { isInOneGo: boolean; hasThreadsBeside: boolean } {
  const program = `
    import { tuneNode } from ${JSON.stringify(SOURCE)};
    tuneNode(${processors});
    const kept = [];
    for (let i = 0; i < 3_000_000; i += 1) {
      kept[i % 1_000_000] = { i, text: 'x' + i };
      if (i % 1000 === 0) await new Promise(setImmediate);
    }`;
  const flags = ['--max-old-space-size=160', '--trace-gc', '--trace-concurrent-marking', '--input-type=module'];
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '-e', program], { encoding: 'utf8' });
  const pauses = [...stdout.matchAll(/(\d+) ms: Mark-Compact .*? MB, (?:pooled: \d+ MB, )?([\d.]+) \//g)].map(
    ([, end, took]) => ({ from: Number(end) - Number(took) - ROUNDED, to: Number(end) }),
  );
  expect(pauses.length, stderr).toBeGreaterThan(0);
  const begun = [...stdout.matchAll(/(\d+) ms: Starting major concurrent marking task/g)].map(([, at]) => Number(at));
  return {
    isInOneGo: !stdout.includes('since start of marking'),
    // Threads that mark during a pause do not run concurrently with the program.
    hasThreadsBeside: begun.some((at) => !pauses.some(({ from, to }) => from <= at && at <= to)),
  };
}

test('marks the heap in one pause with one processor, and concurrently with more', () => {
  expect(traceMarking(1)).toEqual({ isInOneGo: true, hasThreadsBeside: false });
  expect(traceMarking(2)).toEqual({ isInOneGo: false, hasThreadsBeside: true });
});

/** Allocates long-lived objects, and counts how often V8 considered pretenuring later ones. */
function countTenured(isTuned: boolean): number {
  const program = `
    import { tuneNode } from ${JSON.stringify(SOURCE)};
    if (${isTuned}) tuneNode();
    const kept = [];
    const make = (i) => { kept.push({ i, names: [i], inner: { i } }); };
    for (let i = 0; i < 500_000; i += 1) make(i);
    console.log('made', kept.length);`;
  const flags = ['--trace-pretenuring', '--trace-pretenuring-statistics', '--input-type=module'];
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '-e', program], { encoding: 'utf8' });
  expect(stdout, stderr).toContain('made 500000');
  return [...stdout.matchAll(/=> (?:maybe )?tenure/g)].length;
}

test('V8 does not pretenure objects because earlier ones were long-lived', () => {
  expect(countTenured(true)).toBe(0);
  expect(countTenured(false)).toBeGreaterThan(0);
});

/** Returns the inline cache states of `process.nextTick` object literals after an idle full collection. */
function traceTicks(isTuned: boolean): readonly (string | undefined)[] {
  const program = `
    import { tuneNode } from ${JSON.stringify(SOURCE)};
    if (${isTuned}) tuneNode();
    const rest = () => new Promise((resolve) => setTimeout(resolve, 10));
    const tick = () => { for (let i = 0; i < 50; i += 1) process.nextTick(() => undefined); }; // too few calls to be optimised
    tick();
    await rest();
    gc();
    gc();
    tick();
    await rest();
    console.log(JSON.stringify(%GetFeedback(process.nextTick)));`;
  const flags = ['--expose-gc', '--allow-natives-syntax', '--input-type=module'];
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '-e', program], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return [...stdout.matchAll(/"DefineKeyedOwnPropertyInLiteral","(\w+)"/g)].map(([, state]) => state);
}

test('V8 keeps the hidden class of tick objects across collections', () => {
  expect(new Set(traceTicks(true))).toEqual(new Set(['MONOMORPHIC']));
  // If this fails, Node or V8 has fixed it, and the object no longer has to be kept alive.
  expect(new Set(traceTicks(false))).toContain('MEGAMORPHIC');
});

/** The threads of libuv's pool, which the first look-up of a name starts. */
function countPoolThreads(env: NodeJS.ProcessEnv): number {
  const program = `
    import { lookup } from 'node:dns/promises';
    import { readdirSync, readFileSync } from 'node:fs';
    import { tuneNode } from ${JSON.stringify(SOURCE)};
    tuneNode();
    await lookup('localhost');
    const names = readdirSync('/proc/self/task').map((id) => readFileSync('/proc/self/task/' + id + '/comm', 'utf8'));
    console.log(names.filter((name) => name.startsWith('libuv-worker')).length);`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], ...env },
  });
  expect(stderr).toBe('');
  return Number(stdout);
}

test('starts more threads for look-ups of names than Node does, unless the environment sets their number', () => {
  expect(countPoolThreads({})).toBe(32);
  expect(countPoolThreads({ UV_THREADPOOL_SIZE: '5' })).toBe(5);
});
