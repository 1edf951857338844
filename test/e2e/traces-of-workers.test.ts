import { expect, test } from 'vitest';
import { startHttpUpstream } from '../support/http-upstream.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { send } from '../support/send.ts';
import { eventually } from '../support/tidegate.ts';
import { startWorkers } from '../support/workers.ts';

const PATIENCE = 90_000;

test(
  'each worker traces for itself, under a name of its own, and sends what is left when all end',
  async () => {
    const receiver = await startOtlpReceiver();
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startWorkers(`workers: 2\nupstreams: {api: {url: "${upstream.url}"}}`, {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/v1/traces`,
      OTEL_BSP_SCHEDULE_DELAY: '60000',
    });
    for (let i = 0; i < 6; i += 1) await send(gate.url, '/');
    gate.child.kill('SIGTERM');
    await gate.ended;
    const servers = await eventually(
      () => receiver.spans.filter(({ kind }) => kind === 'server'),
      ({ length }) => length === 6,
    );
    const instances = new Set(servers.map(({ resource }) => resource['service.instance.id']));
    expect(instances.size).toBe(2);
    // An id says which worker it was.
    for (const { resource, attributes } of servers) {
      expect(String(attributes['tidegate.request_id']).startsWith(`${String(resource['service.instance.id'])}-`)).toBe(
        true,
      );
    }
  },
  PATIENCE,
);
