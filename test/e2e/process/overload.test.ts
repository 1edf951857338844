import { expect, test } from 'vitest';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { keepAlive, send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

/** Starts a process with additional configuration and environment variables. */
async function start(more: string, env: NodeJS.ProcessEnv = {}) {
  const upstream = await startHttpUpstream((_n, response) => response.end('served'));
  const config = writeConfigFile(`
listen: 127.0.0.1:0
admin: 127.0.0.1:0
telemetry: 127.0.0.1:0
drain: {delay: 0}
upstreams: {api: {url: "${upstream.url}"}}
${more}
`);
  const running = startProcess(['--config', config], { env });
  const [listening] = await eventually(
    () => running.log().filter(({ msg }) => msg === 'listening'),
    ({ length }) => length === 1,
  );
  const { url, admin, telemetry } = listening as { url: string; admin: string; telemetry: string };
  return { ...running, upstream, url, admin, telemetry };
}

test('a process with too little CPU time sheds load, logs it once, and recovers', async () => {
  const { child, ended, log, upstream, url, admin, telemetry } = await start(
    'limits: {overload: {eventLoopDelay: 50ms}}',
  );
  const agent = keepAlive();
  expect((await send(url, '/', { agent })).status).toBe(200);

  // Stops the process most of the time, as a busy scheduler would.
  const answers: number[] = [];
  const health: number[] = [];
  let asking: Promise<unknown>[] = [];
  const shed = () => answers.filter((status) => status === 503).length;
  while (shed() < 5) {
    child.kill('SIGSTOP');
    asking = [
      ...Array.from({ length: 10 }, () => send(url, '/', { agent }).then(({ status }) => answers.push(status))),
      ...[`${admin}/livez`, `${telemetry}/readyz`].map((probe) =>
        fetch(probe).then(({ status }) => health.push(status)),
      ),
    ];
    await pause(200);
    child.kill('SIGCONT');
    await Promise.all(asking);
  }
  expect(new Set(health)).toEqual(new Set([200]));
  expect(new Set(answers)).toEqual(new Set([200, 503]));
  expect(upstream.hits).toHaveLength(1 + answers.length - shed());

  const overloadLines = () => log().filter(({ msg }) => String(msg).startsWith('overload'));
  expect(overloadLines()).toMatchObject([{ level: 'warn', cause: 'event_loop' }]);
  await eventually(overloadLines, ({ length }) => length === 2);
  expect(overloadLines()[1]).toMatchObject({ level: 'warn', msg: 'overload ended', shed: shed() });
  for (let i = 0; i < 20; i += 1) expect((await send(url, '/', { agent })).status).toBe(200);

  child.kill('SIGTERM');
  expect((await ended).code).toBe(0);
});

test('a process whose heap is nearly full rejects requests and reports the overload', async () => {
  // The idle process already uses more than the share allowed here.
  const { log, upstream, url, admin } = await start('limits: {overload: {heapUsed: 0.1}}', {
    NODE_OPTIONS: '--max-old-space-size=60',
  });
  await eventually(
    () => log().filter(({ msg }) => String(msg).startsWith('overload')),
    ({ length }) => length === 1,
  );
  for (let i = 0; i < 5; i += 1) {
    const answer = await send(url, '/');
    expect(answer.status).toBe(503);
    expect(answer.json()).toMatchObject({ reason: 'overloaded' });
  }
  expect(upstream.hits).toHaveLength(0);
  expect((await fetch(`${admin}/readyz`)).status).toBe(200);
  const metrics = await (await fetch(`${admin}/metrics`)).text();
  expect(metrics).toMatch(/^tidegate_bound_reached_total\{bound="heap"\} 5$/m);
  expect(metrics).toMatch(/^tidegate_overload_shed_ratio 1$/m);
  const [line] = log().filter(({ msg }) => String(msg).startsWith('overload'));
  expect(line).toMatchObject({ level: 'warn', cause: 'heap' });
  expect(line?.['heapUsed']).toBeGreaterThan(0.2);
});
