/** V8 tells nobody its flags. But it tells when its threads mark, when the program stands still for them, and what it will make old. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SOURCE = fileURLToPath(new URL('../../src/process/tune-garbage-collector.ts', import.meta.url));
/** V8 tells when a thread begins in whole milliseconds. */
const ROUNDED = 2;

/** How a program with a heap of 60 MB, and as much that dies slowly, has it marked. */
function lookAtMarking(processors: number): { isInOneGo: boolean; hasThreadsBeside: boolean } {
  const program = `
    import { tuneCollector } from ${JSON.stringify(SOURCE)};
    tuneCollector(${processors});
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
    // Those that help while the program stands still for a collection are not beside it.
    hasThreadsBeside: begun.some((at) => !pauses.some(({ from, to }) => from <= at && at <= to)),
  };
}

test('with one processor all is marked in one go; with more beside the program', () => {
  expect(lookAtMarking(1)).toEqual({ isInOneGo: true, hasThreadsBeside: false });
  expect(lookAtMarking(2)).toEqual({ isInOneGo: false, hasThreadsBeside: true });
});

/** Makes objects that all live for long. How often V8 thought of making those that follow old from the start. */
function countTenured(isTuned: boolean): number {
  const program = `
    import { tuneCollector } from ${JSON.stringify(SOURCE)};
    if (${isTuned}) tuneCollector();
    const kept = [];
    const make = (i) => { kept.push({ i, names: [i], inner: { i } }); };
    for (let i = 0; i < 500_000; i += 1) make(i);
    console.log('made', kept.length);`;
  const flags = ['--trace-pretenuring', '--trace-pretenuring-statistics', '--input-type=module'];
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '-e', program], { encoding: 'utf8' });
  expect(stdout, stderr).toContain('made 500000');
  return [...stdout.matchAll(/=> (?:maybe )?tenure/g)].length;
}

test('what is made of late is not old from the start because what was made before it lived for long', () => {
  expect(countTenured(true)).toBe(0);
  expect(countTenured(false)).toBeGreaterThan(0);
});

/** What V8 remembers, in its words, of the places where the object of a tick is made, after a collection in a quiet moment. */
function lookAtTicks(isTuned: boolean): readonly (string | undefined)[] {
  const program = `
    import { tuneCollector } from ${JSON.stringify(SOURCE)};
    if (${isTuned}) tuneCollector();
    const rest = () => new Promise((resolve) => setTimeout(resolve, 10));
    const tick = () => { for (let i = 0; i < 50; i += 1) process.nextTick(() => undefined); }; // not so often that it is compiled
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

test('V8 does not forget what the object of a tick looks like', () => {
  expect(new Set(lookAtTicks(true))).toEqual(new Set(['MONOMORPHIC']));
  // Should this fail, Node or V8 has mended it, and the object need not be kept.
  expect(new Set(lookAtTicks(false))).toContain('MEGAMORPHIC');
});
