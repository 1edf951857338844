import { expect, test } from 'vitest';
import { chooseLogFormat } from '../../../src/laboratory/fit/log/log-format.ts';
import type { LoggedRequest } from '../../../src/laboratory/fit/logged-request.ts';
import { refusingUrl } from '../../support/upstreams/http-upstream.ts';
import { send, sendAndLeave } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const fast = 'retry: {backOff: {strategy: fixed, baseInterval: 1ms}}';

function parse(line: Record<string, unknown>): LoggedRequest | 'none' | 'aside' {
  const text = JSON.stringify(line);
  const format = chooseLogFormat(text);
  if ('message' in format) throw new Error(format.message);
  return format.parse(text, 1);
}

const summarize = (logged: LoggedRequest | 'none' | 'aside') => {
  if (typeof logged === 'string') return logged;
  const { end, attempts } = logged;
  return attempts === undefined ? [end] : [end, attempts.count, attempts.earlier, attempts.last];
};

test('derives from a proxy’s log what its upstream received and answered, and what never reached it', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${fast}}}`);
  let id = 0;
  const scripted = (method: string, script: string, ...headers: string[]) =>
    send(gate.url, '/', {
      method,
      headers: ['X-Practice-Id', `i${(id += 1)}`, 'X-Practice-Script', script, ...headers],
    });
  await sendAndLeave(gate.url, '/', { headers: ['X-Practice-Script', 'hang'] }, () => upstream.stats().received === 1);
  await scripted('GET', '200');
  await scripted('GET', '404');
  await scripted('GET', '503, 200');
  await scripted('GET', '429; retry-after=0, 200');
  await scripted('GET', '503');
  await scripted('POST', '500');
  await scripted('GET', '200', 'Expect', 'more');
  await scripted('POST', '429; retry-after=100');
  await send(gate.url, '/'); // held
  const lines = await eventually(gate.requests, ({ length }) => length === 10);

  expect(lines.map((line) => summarize(parse(line)))).toEqual([
    ['gone', 1, 'unclear', 'unheard'],
    ['served', 1, 'unclear', 'passed'],
    ['served', 1, 'unclear', 'passed'],
    ['served', 2, 'unclear', 'passed'],
    ['served', 2, 'unclear', 'passed'],
    ['failed', 4, 'failed', 'failed'],
    ['failed', 1, 'failed', 'failed'],
    'aside',
    ['refused', 1, 'refused', 'refused'],
    ['refused'],
  ]);
});

test('counts an unreachable upstream as failed, however it is logged', async () => {
  const gate = await startTidegate(`upstreams: {api: {url: "${await refusingUrl()}", ${fast}}}`);
  await send(gate.url, '/');
  const [line = {}] = await eventually(gate.requests, ({ length }) => length === 1);
  expect(summarize(parse(line))).toEqual(['failed', 4, 'failed', 'failed']);
});
