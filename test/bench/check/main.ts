// The cost of authorization checks: 1 000 a second, started when due even if earlier ones are pending, and timed from then.
// And their effect: nginx in front of an app whose upstream has a limit of 50/s, and which reports only rejections, every
// response, or nothing.
//
//   npm run bench:check -- [--smoke] [--rate 1000] [--seconds 20]

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { processorTime } from '../overhead/processor-time.ts';
import { Program } from '../program.ts';
import type { CheckLatencies } from './load.ts';
import { sendEvenly } from './load.ts';
import { runLoop } from './loop.ts';

const { smoke, rate, seconds } = parseArgs({
  options: {
    smoke: { type: 'boolean', default: false },
    rate: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '20' },
  },
}).values;
const LASTS = 1000 * (smoke ? 2 : Number(seconds));
const LOOP = smoke ? 4000 : 30_000;
/** Milliseconds at the start that are not counted, while code is being compiled. */
const WARM_UP = smoke ? 1000 : 5000;
const TOKEN = 'correct-horse-battery';

const folder = mkdtempSync(join(tmpdir(), 'tidegate-bench-check-'));
try {
  await measureChecks();
  for (const reports of ['refusals', 'all', 'none'] as const) {
    const { passed, refused, unasked } = await runLoop({ folder, reports, lasts: LOOP, token: TOKEN });
    console.log(
      `nginx, 100/s for an upstream that takes 50/s, reported: ${reports.padEnd(8)}  ` +
        `${passed.toFixed(1)}/s taken, ${refused.toFixed(1)}/s sent in vain, ${unasked.toFixed(1)}/s turned away before`,
    );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function measureChecks(): Promise<void> {
  const config = join(folder, 'tidegate.yaml');
  writeFileSync(
    config,
    `listen: 127.0.0.1:0
admin: false
log: {successes: 0.01}
clients: {trustedProxies: [127.0.0.1], key: ["header:x-api-key"]}
upstreams: {api: {url: "http://127.0.0.1:9", rateLimit: {initialRate: 800/s, maxRate: 800/s}, queue: {maxWait: 0}}}
check: {}
`,
  );
  const tidegate = new Program({
    command: process.execPath,
    args: ['src/main.ts', 'serve', '--config', config],
    stopSignal: 'SIGKILL',
  });
  try {
    const url = await tidegate.printed(/"url":"([^"]+)"/);
    await sendEvenly(url, Number(rate), WARM_UP);
    const before = processorTime(tidegate.pid ?? 0);
    const taken = await sendEvenly(url, Number(rate), LASTS);
    const each = (1e6 * (processorTime(tidegate.pid ?? 0) - before)) / taken.times.length;
    console.log(
      `${rate} checks a second for ${LASTS / 1000} s, with a limit of 800: ${formatResult(taken)}; ${each.toFixed(0)} µs of processor time each`,
    );
    if (taken.failed > 0) process.exitCode = 1;
  } finally {
    await tidegate.stop();
  }
}

function formatResult({ times, statuses, failed }: CheckLatencies): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (q: number): string => `${(sorted[Math.ceil(q * sorted.length) - 1] ?? Number.NaN).toFixed(2)} ms`;
  const counts = [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ');
  return `p50 ${at(0.5)}, p99 ${at(0.99)}, p99.9 ${at(0.999)}; ${counts}; ${failed} failed`;
}
