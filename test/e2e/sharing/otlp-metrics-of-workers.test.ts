import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startOtlpReceiver } from '../../support/upstreams/otlp-receiver.ts';

const PATIENCE = 90_000;

test(
  'the primary exports the metrics of all workers together',
  async () => {
    const receiver = await startOtlpReceiver();
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startWorkers(`workers: 2\nupstreams: {api: {url: "${upstream.url}"}}`, {
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${receiver.url}/v1/metrics`,
      OTEL_METRIC_EXPORT_INTERVAL: '200',
    });
    for (let i = 0; i < 6; i += 1) await send(gate.url, '/');
    const total = () =>
      (receiver.metricExports.at(-1) ?? [])
        .filter(({ name }) => name === 'tidegate_requests_total')
        .reduce((sum, { value }) => sum + Number(value), 0);
    expect(await eventually(total, (count) => count === 6)).toBe(6);
    const instances = new Set(receiver.metricExports.flat().map(({ resource }) => resource['service.instance.id']));
    expect(instances.size).toBe(1);
    gate.child.kill('SIGTERM');
    await gate.ended;
  },
  PATIENCE,
);
