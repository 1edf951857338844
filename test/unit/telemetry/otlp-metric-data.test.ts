/** Metrics of Prometheus in the form of OpenTelemetry. */
import { AggregationTemporality, DataPointType } from '@opentelemetry/sdk-metrics';
import { describe, expect, test } from 'vitest';
import { METRICS, readExportSettings, readMillis, TRACES } from '../../../src/telemetry/otlp/export-settings.ts';
import { toMetricData } from '../../../src/telemetry/otlp/metric-data.ts';

const PERIOD = { startedAt: 1_700_000_000_000, at: 1_700_000_001_500.25 };

describe('a metric', () => {
  test('that is a counter becomes a cumulative, monotonic sum with its name, labels and times', () => {
    const samples = [{ labels: { route: '/' }, value: 3 }];
    expect(
      toMetricData([{ name: 'tidegate_requests_total', help: 'Requests.', type: 'counter', samples }], PERIOD),
    ).toEqual([
      {
        descriptor: { name: 'tidegate_requests_total', description: 'Requests.', unit: '', valueType: 1 },
        aggregationTemporality: AggregationTemporality.CUMULATIVE,
        dataPointType: DataPointType.SUM,
        isMonotonic: true,
        dataPoints: [
          {
            startTime: [1_700_000_000, 0],
            endTime: [1_700_000_001, 500_250_000],
            attributes: { route: '/' },
            value: 3,
          },
        ],
      },
    ]);
  });

  test('that is a histogram becomes one data point for each set of labels, with the counts of single buckets', () => {
    const name = 'tidegate_queue_wait_seconds';
    const bucket = (upstream: string, le: string, value: number) => ({
      labels: { upstream, le },
      value,
      metricName: `${name}_bucket`,
    });
    const rest = (upstream: string, part: string, value: number) => ({
      labels: { upstream },
      value,
      metricName: `${name}_${part}`,
    });
    const samples = [
      ...[
        bucket('a', '0.1', 2),
        bucket('a', '1', 5),
        bucket('a', '+Inf', 6),
        rest('a', 'sum', 9.5),
        rest('a', 'count', 6),
      ],
      ...[
        bucket('b', '0.1', 0),
        bucket('b', '1', 0),
        bucket('b', '+Inf', 1),
        rest('b', 'sum', 70),
        rest('b', 'count', 1),
      ],
    ];
    const [data, ...more] = toMetricData([{ name, help: 'Waits.', type: 'histogram', samples }], PERIOD);
    expect(more).toEqual([]);
    expect(data).toMatchObject({ dataPointType: DataPointType.HISTOGRAM, descriptor: { unit: 's' } });
    expect(data?.dataPoints.map(({ attributes, value }) => [attributes, value])).toEqual([
      [{ upstream: 'a' }, { buckets: { boundaries: [0.1, 1], counts: [2, 3, 1] }, sum: 9.5, count: 6 }],
      [{ upstream: 'b' }, { buckets: { boundaries: [0.1, 1], counts: [0, 0, 1] }, sum: 70, count: 1 }],
    ]);
  });

  test.each([
    ['tidegate_replay_buffer_bytes', 'By'],
    ['tidegate_upgraded_bytes_total', 'By'],
    ['tidegate_overload_shed_ratio', '1'],
    ['tidegate_queue_depth', ''],
  ])('has the unit that ends its name: %s', (name, unit) => {
    const [data] = toMetricData([{ name, help: '', type: 'gauge', samples: [{ labels: {}, value: 1 }] }], PERIOD);
    expect(data?.descriptor.unit).toBe(unit);
  });

  test.each([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN])(
    'with the value %s is left out',
    (value) => {
      const samples = [
        { labels: { upstream: 'a' }, value },
        { labels: { upstream: 'b' }, value: 2 },
      ];
      const [data] = toMetricData([{ name: 'a', help: '', type: 'gauge', samples }], PERIOD);
      expect(data?.dataPoints.map(({ attributes }) => attributes)).toEqual([{ upstream: 'b' }]);
    },
  );

  test('without samples is left out', () => {
    expect(toMetricData([{ name: 'a', help: '', type: 'gauge', samples: [] }], PERIOD)).toEqual([]);
  });
});

describe('the export of metrics', () => {
  test.each([
    [{}, 'off'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318' }, 'off'],
    [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://c:4318/v1/metrics' }, 'on'],
    [{ OTEL_METRICS_EXPORTER: 'otlp' }, 'on'],
    [{ OTEL_METRICS_EXPORTER: 'none', OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://c:4318' }, 'off'],
    [{ OTEL_METRICS_EXPORTER: 'otlp', OTEL_SDK_DISABLED: 'true' }, 'off'],
  ])('with %j is %s', (env, kind) => {
    expect(readExportSettings(env, METRICS)).toEqual({ kind });
  });

  test('warns of another exporter or protocol', () => {
    expect(readExportSettings({ OTEL_METRICS_EXPORTER: 'prometheus' }, METRICS)).toEqual({
      kind: 'off',
      warning: "OTEL_METRICS_EXPORTER is 'prometheus': only otlp and none are supported; metrics are off",
    });
    expect(readExportSettings({ OTEL_METRICS_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, METRICS)).toEqual(
      {
        kind: 'on',
        warning: 'metrics are sent as http/json, not as grpc: the endpoint must accept JSON',
      },
    );
  });

  test('does not turn traces on, nor the other way round', () => {
    expect(readExportSettings({ OTEL_METRICS_EXPORTER: 'otlp' }, TRACES)).toEqual({ kind: 'off' });
    expect(readExportSettings({ OTEL_TRACES_EXPORTER: 'otlp' }, METRICS)).toEqual({ kind: 'off' });
  });

  test.each([
    ['5000', 5000],
    [' 1 ', 1],
    ['', 60_000],
  ])('reads an interval of %j as %s', (word, millis) => {
    expect(readMillis({ INTERVAL: word }, 'INTERVAL', 60_000)).toEqual({ millis });
  });

  test.each(['0', '-5', '1e3', '60s', '99999999999'])('warns of an interval of %j, and uses the default', (word) => {
    expect(readMillis({ INTERVAL: word }, 'INTERVAL', 60_000)).toEqual({
      millis: 60_000,
      warning: `INTERVAL is '${word}', not a number of milliseconds: 60000 is used`,
    });
  });
});
