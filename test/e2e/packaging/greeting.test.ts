import { execFileSync, spawn } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';

/** Runs `npm start` on a pseudo-terminal, with free ports. `press` types keys. */
function startOnTerminal(
  options = '--config config/practice.yaml',
  env: NodeJS.ProcessEnv = {},
): {
  readonly output: () => string;
  readonly press: (keys: string) => void;
} {
  const command = `exec node scripts/start.ts --listen 127.0.0.1:0 --admin 127.0.0.1:0 ${options}`;
  const child = spawn('script', ['-qec', command, '/dev/null'], { detached: true, env: { ...process.env, ...env } });
  onTestFinished(() => void process.kill(-(child.pid ?? 0), 'SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString().replaceAll('\r', '')));
  return { output: () => output, press: (keys) => void child.stdin.write(keys) };
}

/** Runs a greeted command as a user does, who copies the line. */
function run(command: string): string {
  return execFileSync('sh', ['-c', command], { encoding: 'utf8' });
}

test('npm start on a terminal shows commands for a retry and for a burst, and they do what it says', async () => {
  const { output } = startOnTerminal();
  const text = await eventually(output, (seen) => seen.includes('Ctrl-C stops the server.'));
  const commands = Array.from(text.matchAll(/curl .*$/gm), ([line]) => line);
  expect(commands).toHaveLength(3);
  const [one = '', retry = '', burst = ''] = commands;
  expect(run(one)).toMatch(/^HTTP\/1\.1 200 /);
  for (const _ of ['once', 'again']) expect(run(retry)).toMatch(/^Tidegate-Attempts: 3\r$/m);
  const responses = run(burst).trimEnd().split('\n');
  expect(responses).toHaveLength(60);
  const waits = responses.map((line) => Number(/^200 after ([\d.]+) s/.exec(line)?.[1] ?? 0));
  expect(Math.max(...waits)).toBeGreaterThan(0.2);
  expect(responses.some((line) => /^429 after .* s, Retry-After: [1-9]/.test(line))).toBe(true);
});

test('a drain after Ctrl-C on a terminal says how long it may last, and that a second Ctrl-C ends it', async () => {
  const upstream = await startUpstream();
  const { output, press } = startOnTerminal(`--upstream ${upstream.url}`);
  const text = await eventually(output, (seen) => seen.includes('listening'));
  const url = /url=(http:\S+)/.exec(text)?.[1] ?? '';
  const headers = { 'x-practice-script': 'hang', 'x-practice-id': 'hung' };
  const response = fetch(url, { headers }).catch(() => 'cut');
  await eventually(
    () => upstream.stats().inFlight,
    (inFlight) => inFlight === 1,
  );
  press('\x03');
  const hint = 'Requests in flight have at most 25 s to end (drain.timeout). Ctrl-C ends them at once.';
  await eventually(output, (seen) => seen.includes(hint));
  press('\x03');
  expect(await response).toBe('cut');
});

test('a Ctrl-C that arrives as soon as the process has a listener for it drains the process', async () => {
  // While the process starts, Node may handle signals whenever the code waits for something.
  const interrupt = `process.on('newListener', function interrupt(name) {
    if (name !== 'SIGINT') return;
    process.off('newListener', interrupt);
    queueMicrotask(() => process.emit('SIGINT', 'SIGINT'));
  })`;
  const { output } = startOnTerminal(undefined, {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(interrupt)}`,
  });
  await eventually(output, (seen) => seen.includes('listening'));
  expect(await eventually(output, (seen) => seen.includes('stopped'))).toContain('draining');
});
