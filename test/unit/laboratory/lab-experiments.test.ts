import { describe, expect, test } from 'vitest';
import { runExperiment } from '../../../src/laboratory/commands/run-experiment.ts';
import { ProgressBar } from '../../../src/laboratory/commands/progress-bar.ts';
import type { Experiment } from '../../../src/laboratory/experiment.ts';
import { RoundRobinExperiment } from '../../../src/laboratory/round-robin.ts';

function counting(steps: number): Experiment<number> {
  let done = 0;
  return {
    get progress() {
      return done / steps;
    },
    step: () => {
      done += 1;
    },
    result: () => done,
  };
}

describe('an experiment', () => {
  test('runs to its end', async () => {
    const experiment = counting(1000);
    const progress = await runExperiment(experiment, {
      onProgress: undefined,
      signal: new AbortController().signal,
      now: () => 0,
    });
    expect({ progress, result: experiment.result() }).toEqual({ progress: 1, result: 1000 });
  });

  test('stops at the current step when it is interrupted', async () => {
    const stop = new AbortController();
    let now = 0;
    const experiment = counting(1_000_000);
    const shown: number[] = [];
    const show = (progress: number): void => {
      shown.push(progress);
      stop.abort();
    };
    // A step takes a millisecond.
    const progress = await runExperiment(experiment, { onProgress: show, signal: stop.signal, now: () => (now += 1) });
    expect(shown).toEqual([progress]);
    expect(progress).toBeGreaterThan(0);
    expect(progress).toBeLessThan(1);
  });

  test('that ends soon shows no progress bar', async () => {
    const shown: number[] = [];
    const show = (progress: number): void => void shown.push(progress);
    await runExperiment(counting(10), { onProgress: show, signal: new AbortController().signal, now: () => 0 });
    expect(shown).toEqual([]);
  });
});

test('overwrites its bar, and erases it at the end', () => {
  const written: string[] = [];
  const bar = new ProgressBar({ write: (text) => void written.push(text), columns: 80 });
  bar.show(0.5);
  bar.show(0.501);
  bar.clear();
  bar.clear();
  expect(written).toHaveLength(2);
  expect(written[0]).toMatch(/^\r {2}█{15}░{15} 50 %/);
  expect(written[1]).toMatch(/^\r +\r$/);
});

test('shortens a bar to one line of a narrow terminal', () => {
  for (const columns of [62, 61, 45, 20]) {
    const written: string[] = [];
    new ProgressBar({ write: (text) => void written.push(text), columns }).show(1);
    expect(written[0]).toContain('100 %');
    // The last column is left free, as some terminals start a new line after it.
    expect(written[0]?.length).toBeLessThanOrEqual(columns);
  }
});

test('runs cells in turn, so that each has run if it is stopped early', () => {
  const ran: string[] = [];
  const cell = (name: string) => ({
    run: () => ran.push(name) > 0,
    row: () => (ran.includes(name) ? name : undefined),
  });
  const rounds = new RoundRobinExperiment([cell('a'), cell('b')], 2);
  rounds.step();
  expect(rounds.result()).toEqual(['a']);
  while (rounds.progress < 1) rounds.step();
  expect(ran).toEqual(['a', 'b', 'a', 'b']);
  expect(rounds.result()).toEqual(['a', 'b']);
  expect(new RoundRobinExperiment([], 3).progress).toBe(1);
});

test('continues a cell that has not finished its round', () => {
  const ran: string[] = [];
  const pieces = { run: () => ran.push('a') % 3 === 0, row: () => (ran.length < 3 ? undefined : 'a') };
  const rounds = new RoundRobinExperiment([pieces], 2);
  rounds.step();
  expect(rounds.result()).toEqual([]);
  while (rounds.progress < 1) rounds.step();
  expect(ran).toHaveLength(6);
});
