import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { SystemdNotifier } from '../../../src/process/health/systemd-notifier.ts';

test('logs once that systemd is not notified if the system refuses to start a program, and throws nothing', () => {
  const lines: string[] = [];
  const logger = pino({}, { write: (line: string) => void lines.push(line) });
  // A variable of more than 128 KiB: the system refuses to start a child with it (E2BIG).
  vi.stubEnv('TIDEGATE_TEST_LARGE', 'x'.repeat(256 * 1024));
  onTestFinished(() => void vi.unstubAllEnvs());
  const notifier = new SystemdNotifier({ NOTIFY_SOCKET: '/nowhere' }, logger);
  notifier.reportReady();
  notifier.reportStopping(1000);
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    {
      why: expect.stringContaining('E2BIG') as string,
      msg: expect.stringContaining('systemd cannot be notified') as string,
    },
  ]);
});
