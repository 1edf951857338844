/** A reload that changes what identifies a write. */
import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const WARNING = 'repeats of earlier writes may be sent as new ones: what identifies a write has changed';

test('a reload after which the body names a write warns, and the repeat of an unresolved write is a new one', async () => {
  const upstream = await startHttpUpstream((nth, response) => {
    if (nth === 1) response.destroy();
    else response.writeHead(400).end();
  });
  const yaml = (idempotency: string) =>
    `upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}, idempotency: {header: Idempotency-Key${idempotency}}}}`;
  const gate = await startTidegate(yaml(''));
  const pay = async () => {
    const headers = ['Content-Type', 'application/json', 'Idempotency-Key', 'h1'];
    const { status, header } = await send(gate.url, '/pay', { method: 'POST', headers, body: '{"key":"b1"}' });
    return [status, header('tidegate-outcome')];
  };
  const warnings = () => gate.log().filter(({ msg }) => msg === WARNING);
  expect(await pay()).toEqual([504, 'unknown']);
  await gate.rewrite(yaml(', concurrent: refuse'));
  expect(await pay()).toEqual([504, 'unknown']); // the upstream rejects the repeat, which says nothing about the first request
  expect(warnings()).toEqual([]);
  await gate.rewrite(yaml(', concurrent: refuse, jsonField: key'));
  expect(warnings()).toMatchObject([{ level: 'warn', changed: ['upstreams.api.idempotency.jsonField'] }]);
  expect(await pay()).toEqual([400, undefined]);
});
