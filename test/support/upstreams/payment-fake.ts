/**
 * A payment upstream in its own process, which can be killed. It journals charges to a file that persists.
 *
 *     POST /charges      charged when the work is done; with an Idempotency-Key, once
 *     GET  /anything     a response of `?bytes=` bytes
 *
 * Started by start-payment-fake.ts with the file and the port (0: any free one); messages set its latency.
 */
import { createHash } from 'node:crypto';
import { openSync, readFileSync, writeSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { ChargeLedger } from '../../../src/simulator/practice/charge-ledger.ts';
import type { ChargeOutcome } from '../../../src/simulator/practice/charge-ledger.ts';

/** A line of the journal. */
export type JournalEntry =
  /** The head of a write has arrived. */
  | { readonly what: 'came'; readonly intent: string }
  | { readonly what: 'charged'; readonly intent: string; readonly key: string | null; readonly fingerprint: string }
  /** A body that differs from the one sent. */
  | { readonly what: 'spoiled'; readonly intent: string };

/** Pads each body to the length of its head, so that random cuts hit both equally often. */
const FILLER = 'x'.repeat(200);

const [file = '', port = '0'] = process.argv.slice(2);
const journal = openSync(file, 'a+');
const ledger = new ChargeLedger(Date.now);
let latency = 20;

for (const line of readFileSync(file, 'utf8').split('\n')) {
  if (line === '') continue;
  const booked = JSON.parse(line) as JournalEntry;
  if (booked.what !== 'charged' || booked.key === null) continue;
  const entry = begin(booked.intent, booked.key, booked.fingerprint);
  if (entry.kind === 'new') entry.commit();
}

process.on('message', (work: number) => {
  latency = work;
});

const server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, (request, response) => {
  if (request.method === 'POST') return charge(request, response);
  request.resume();
  const bytes = Number(new URL(request.url ?? '/', 'http://fake').searchParams.get('bytes') ?? 200);
  later(() => answer(response, 200, 'x'.repeat(bytes)));
});
server.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EADDRINUSE') throw error;
  setTimeout(listen, 20); // an outgoing connection may use the port for a moment
});
server.on('listening', () => {
  const address = server.address();
  process.send?.(typeof address === 'object' && address !== null ? address.port : 0);
});
listen();

function listen(): void {
  server.listen({ host: '127.0.0.1', port: Number(port), backlog: 4096 });
}

function charge(request: IncomingMessage, response: ServerResponse): void {
  const { 'x-intent': intent = '', 'idempotency-key': key, 'x-sha256': digest } = request.headers;
  book({ what: 'came', intent: String(intent) });
  const hash = createHash('sha256');
  request.on('data', (chunk: Buffer) => hash.update(chunk));
  request.on('end', () => {
    const fingerprint = hash.digest('hex');
    if (fingerprint !== digest) book({ what: 'spoiled', intent: String(intent) });
    const entry = begin(String(intent), key === undefined ? null : String(key), fingerprint);
    if (entry.kind === 'busy' || entry.kind === 'mismatch') return answer(response, 409, `${entry.kind}${FILLER}`);
    // Work in progress is finished even if the client has left.
    later(() => {
      if (entry.kind === 'new') {
        entry.commit();
        book({ what: 'charged', intent: String(intent), key: key === undefined ? null : String(key), fingerprint });
      }
      answer(response, 200, `${String(intent)} ${FILLER}`);
    });
  });
}

function begin(intent: string, key: string | null, fingerprint: string): ChargeOutcome {
  const request = { object: 'charge', amount: 1, currency: 'eur', metadata: {}, intent, fingerprint } as const;
  return ledger.begin({ ...request, key: key ?? undefined });
}

function book(line: JournalEntry): void {
  writeSync(journal, `${JSON.stringify(line)}\n`);
}

function later(act: () => void): void {
  setTimeout(act, latency);
}

function answer(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, ['Content-Type', 'text/plain', 'Content-Length', String(body.length)]);
  response.end(body);
}
