import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makePem } from '../../support/certificates.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { AGAIN_IF_STALLED, watchStalls } from '../../support/stalls.ts';

const PATIENCE = 15_000;
const SERIES = 'tidegate_certificate_expiry_timestamp_seconds{setting="listen.tls.cert"}';

/** A PEM file with a certificate that expires in so many seconds, and a function that replaces it. */
function makeFile(seconds: number) {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-expiry-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'tls.pem');
  const write = (left: number): Date => {
    const expiresAt = new Date(1000 * Math.floor(Date.now() / 1000 + left));
    writeFileSync(path, makePem(expiresAt));
    return expiresAt;
  };
  return { path, write, expiresAt: write(seconds) };
}

const listenOn = (path: string): string =>
  `listen: {address: 127.0.0.1:0, tls: {cert: ${path}, key: ${path}}}\nupstreams: {api: {url: "http://127.0.0.1:1"}}\n`;

interface Timeline {
  readonly events: readonly { readonly kind: string; readonly text: string }[];
}

async function timelineOf(adminUrl: string | undefined): Promise<readonly string[]> {
  const { events } = (await (await fetch(`${adminUrl}/api/timeline`)).json()) as Timeline;
  return events.map(({ kind, text }) => `${kind} ${text}`).toReversed();
}

test('logs and records that the certificate nears its expiry, expires, and is replaced', AGAIN_IF_STALLED, async () => {
  const stalls = watchStalls();
  const { path, write, expiresAt } = makeFile(4);
  const gate = await startTidegate(listenOn(path));
  const lines = () =>
    gate.log().filter(({ msg }) => String(msg).startsWith('certificate ') && !String(msg).includes('reloaded'));
  const about = { setting: 'listen.tls.cert', expiresAt: expiresAt.toISOString() };
  expect(lines()).toMatchObject([{ level: 'warn', msg: 'certificate expires soon: replace it', ...about }]);
  expect(await eventually(lines, ({ length }) => length === 2, PATIENCE)).toMatchObject([
    {},
    { level: 'error', msg: 'certificate expired: clients that verify it cannot connect', ...about },
  ]);
  const late = Date.now() - expiresAt.getTime();
  stalls.unlessStalled(() => expect(late).toBeLessThan(2000)); // not at the next check, up to 5 s later

  expect(await gate.metric(SERIES)).toBe(expiresAt.getTime() / 1000);
  const next = write(90 * 86_400);
  await eventually(
    () => gate.metric(SERIES),
    (value) => value === next.getTime() / 1000,
    2500,
  );
  expect((await eventually(lines, ({ length }) => length === 3, PATIENCE))[2]).toMatchObject({
    level: 'info',
    msg: 'certificate renewed',
    expiresAt: next.toISOString(),
  });
  expect(await timelineOf(gate.adminUrl)).toEqual([
    'expires certificate of listen.tls.cert expires in less than a minute',
    'expired certificate of listen.tls.cert has expired: clients that verify it cannot connect',
    'renewed certificate of listen.tls.cert was renewed',
  ]);
});

test('keeps the expiry of the certificate in use while the new files cannot be used', async () => {
  const { path, expiresAt } = makeFile(30 * 86_400);
  const gate = await startTidegate(listenOn(path));
  expect(await gate.metric(SERIES)).toBe(expiresAt.getTime() / 1000);
  const [certificate] = makePem().split('-----BEGIN PRIVATE KEY-----');
  writeFileSync(path, `${certificate}${makePem().slice(String(certificate).length)}`); // of different keys
  await eventually(
    gate.log,
    (log) => log.some(({ msg }) => String(msg).startsWith('new certificate cannot')),
    PATIENCE,
  );
  await new Promise((resolve) => setTimeout(resolve, 1100));
  expect(await gate.metric(SERIES)).toBe(expiresAt.getTime() / 1000);
});

test('reports an expired certificate once for several workers', async () => {
  const { path } = makeFile(-60);
  const workers = await startWorkers(`workers: 2\n${listenOn(path)}`);
  const events = await eventually(
    () => timelineOf(workers.adminUrl),
    ({ length }) => length > 0,
    PATIENCE,
  );
  expect(events).toEqual(['expired certificate of listen.tls.cert has expired: clients that verify it cannot connect']);
});
