import { expect, test } from 'vitest';
import { judgeClock } from '../../../src/cli/doctor/judge-clock.ts';

const sample = (name: string, offset: number, error = 500) => ({ name, offset, error });
const summary = (...samples: Parameters<typeof judgeClock>[0]) =>
  judgeClock(samples).map(({ status, place, meaning }) => [status, place, meaning.split(':')[0]]);

test('is skipped without a sample', () => {
  expect(summary()).toEqual([['skipped', 'clock of this machine', 'no server has responded with its time']]);
});

test('agrees with a server within the error of its Date and two seconds', () => {
  expect(summary(sample('a', 2499))).toEqual([['ok', 'clock of this machine', 'agrees with a within 2 s']]);
  expect(summary(sample('a', -2499))[0]?.[0]).toBe('ok');
  expect(summary(sample('a', 2500))).toEqual([['warning', 'clock of this machine', '3 s behind that of a']]);
  expect(summary(sample('a', -2500))).toEqual([['warning', 'clock of this machine', '3 s ahead of that of a']]);
});

test('is a problem from a minute on', () => {
  expect(summary(sample('a', 60_499))[0]?.[0]).toBe('warning');
  expect(summary(sample('a', 60_500))[0]?.[0]).toBe('problem');
});

test('blames this machine if most servers agree with one another', () => {
  expect(summary(sample('a', 300_000), sample('b', 300_400), sample('c', 0))).toEqual([
    ['problem', 'clock of this machine', '300 s behind that of a'],
    ['warning', 'clock of c', '300 s behind that of the other servers'],
  ]);
});

test('blames the server that differs from the others', () => {
  expect(summary(sample('a', 10), sample('b', -20), sample('c', 300_000))).toEqual([
    ['ok', 'clock of this machine', 'agrees with a within 2 s'],
    ['warning', 'clock of c', '300 s ahead of that of the other servers'],
  ]);
});

test('takes the nearer of two servers for right', () => {
  for (const samples of [
    [sample('a', 0), sample('b', -90_000)],
    [sample('b', -90_000), sample('a', 0)],
  ]) {
    expect(summary(...samples)).toEqual([
      ['ok', 'clock of this machine', 'agrees with a within 2 s'],
      ['warning', 'clock of b', '90 s behind that of a'],
    ]);
  }
});
