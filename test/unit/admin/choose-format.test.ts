import { expect, test } from 'vitest';
import { negotiateFormat } from '../../../src/admin/negotiate-format.ts';

test.each([
  [
    'Prometheus 2',
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
  ],
  [
    'Prometheus 3',
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2',
  ],
  ['a person', 'application/openmetrics-text; version=1.0.0'],
  ['a client that names no version', 'Application/OpenMetrics-Text'],
  ['a client that quotes the version', 'application/openmetrics-text; version="1.0.0"; q=1'],
])('%s gets OpenMetrics', (_who, accept) => {
  expect(negotiateFormat(accept)).toBe('openmetrics');
});

test.each([
  ['a client without an Accept header', undefined],
  ['curl', '*/*'],
  ['a browser', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'],
  ['a client that prefers text', 'application/openmetrics-text;q=0.5,text/plain'],
  ['a client that wants an unsupported version', 'application/openmetrics-text;version=2.0.0'],
  ['a client that refuses OpenMetrics', 'application/openmetrics-text;q=0'],
  ['a client whose q is no number', 'application/openmetrics-text;q=much'],
  ['a client whose Accept is malformed', ';;,,=;q'],
])('%s gets text', (_who, accept) => {
  expect(negotiateFormat(accept)).toBe('prometheus');
});
