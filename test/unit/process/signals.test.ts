import { expect, test } from 'vitest';
import { classifyHangup, isTerminalSignal } from '../../../src/process/signals.ts';

test.each([
  ['linux', false, false, 'reload'],
  ['linux', true, true, 'reload'],
  ['linux', true, false, 'stop'],
  ['darwin', false, false, 'reload'],
  ['darwin', true, false, 'stop'],
  ['win32', false, false, 'stop'],
  ['win32', true, true, 'stop'],
] as const)('SIGHUP on %s, with a terminal at the start: %s, now: %s, means %s', (platform, atStart, now, meaning) => {
  expect(classifyHangup({ atStart, now }, platform)).toBe(meaning);
});

test('signals of a terminal, Ctrl-Break of Windows among them, drain without a delay', () => {
  expect((['SIGINT', 'SIGHUP', 'SIGBREAK'] as const).filter(isTerminalSignal)).toHaveLength(3);
  expect(([undefined, 'SIGTERM', 'SIGQUIT'] as const).filter(isTerminalSignal)).toEqual([]);
});
