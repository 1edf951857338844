import { expect, test } from 'vitest';
import { chooseFormat } from '../../src/admin/negotiate-format.ts';

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
  ['one who does not say which', 'Application/OpenMetrics-Text'],
  ['one who quotes', 'application/openmetrics-text; version="1.0.0"; q=1'],
])('%s gets OpenMetrics', (_who, accept) => {
  expect(chooseFormat(accept)).toBe('openmetrics');
});

test.each([
  ['who says nothing', undefined],
  ['curl', '*/*'],
  ['a browser', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'],
  ['who likes text better', 'application/openmetrics-text;q=0.5,text/plain'],
  ['who wants a version that is not ours', 'application/openmetrics-text;version=2.0.0'],
  ['who refuses it', 'application/openmetrics-text;q=0'],
  ['who has no number for it', 'application/openmetrics-text;q=much'],
  ['who says nonsense', ';;,,=;q'],
])('%s gets text', (_who, accept) => {
  expect(chooseFormat(accept)).toBe('prometheus');
});
