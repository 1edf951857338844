/** `tidegate lab fit` on Tidegate's own log of the practice server, over sockets. */
import { expect, onTestFinished, test } from 'vitest';
import { chooseLogFormat } from '../../../src/laboratory/fit/log/log-format.ts';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import { fitLines } from '../../support/laboratory/fit-lines.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';
import { AGAIN_IF_STALLED, watchStalls } from '../../support/stalls.ts';

const WORKERS = 4;
/** Milliseconds of a worker. */
const SERVICE_TIME = 40;
/** Requests that are enough to show the kind. */
const REQUESTS = 900;

test.each([
  ['fifo', 'queue'],
  ['sharing', 'sharing'],
] as const)(
  'a service with the discipline %s is recognised, or the fit is not sure',
  AGAIN_IF_STALLED,
  async (discipline, kind) => {
    const stalls = watchStalls();
    const upstream = await startUpstream({
      limit: { kind: 'workers', workers: WORKERS, discipline },
      latency: { kind: 'constant', mean: SERVICE_TIME },
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const rate = (0.8 * 1000 * WORKERS) / SERVICE_TIME;
    const traffic = startTraffic({ target: gate.url, clients: [{ name: 'all', rate }], seed: 3 });
    onTestFinished(() => traffic.stop(0));
    const requests = await eventually(
      () => gate.requests(),
      ({ length }) => length >= REQUESTS,
      60_000,
      100,
    );
    const lines = requests.map((each) => JSON.stringify(each));
    const format = chooseLogFormat(lines[0] ?? '', lines[1]);
    if ('message' in format) throw new Error(format.message);
    const logged = lines.map((line, i) => format.parse(line, i + 1)).filter((each) => typeof each !== 'string');
    const { identified } = fitLines(
      logged.toSorted((a, b) => a.at - b.at),
      { rate: undefined, burst: undefined },
    );
    stalls.unlessStalled(() => {
      expect(['sure', 'unsure']).toContain(identified?.confidence);
      if (identified?.confidence !== 'sure') return;
      expect(identified.kind).toBe(kind);
      expect(Math.abs((identified[kind]?.workers ?? 0) - WORKERS)).toBeLessThanOrEqual(0.15 * WORKERS);
    });
  },
);
