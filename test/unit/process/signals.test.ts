import { expect, onTestFinished, test } from 'vitest';
import { classifyHangup, watchStopSignals } from '../../../src/process/signals.ts';

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

test('Ctrl-Break of Windows stops as Ctrl-C does', () => {
  const listeners = process.listeners('SIGBREAK');
  const received: string[] = [];
  const onFirst = (signal: string): void => void received.push(signal);
  watchStopSignals({ onFirst, onSecond: () => undefined }, ['SIGBREAK']);
  const added = process.listeners('SIGBREAK').filter((each) => !listeners.includes(each));
  onTestFinished(() => added.forEach((each) => process.off('SIGBREAK', each)));
  for (const listener of added) listener('SIGBREAK');
  expect(received).toEqual(['SIGINT']);
});
