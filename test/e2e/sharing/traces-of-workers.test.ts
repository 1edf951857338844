import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startOtlpReceiver } from '../../support/upstreams/otlp-receiver.ts';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';

const PATIENCE = 90_000;

test(
  'each worker exports its spans under its own instance id, and flushes them on exit',
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
    // A request id begins with the instance id of its worker.
    for (const { resource, attributes } of servers) {
      expect(String(attributes['tidegate.request_id']).startsWith(`${String(resource['service.instance.id'])}-`)).toBe(
        true,
      );
    }
  },
  PATIENCE,
);
