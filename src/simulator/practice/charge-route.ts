import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Answer } from './practice-response.ts';
import { errorAnswer, jsonAnswer } from './practice-response.ts';
import type { Charge, ChargeRequest, Ledger } from './charge-ledger.ts';
import type { Route, Work } from './practice-route.ts';
import { whenRead } from './practice-route.ts';

const LARGEST_BODY = 1024 * 1024;

/** Charges what the body asks for. The key is taken when the body has come; the charge is made when the work is done. */
export function chargeRoute(ledger: Ledger, object: Charge['object']): Route {
  return (request, ready) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= LARGEST_BODY) chunks.push(chunk);
    });
    whenRead(request, (whole) => {
      if (!whole) return ready(undefined);
      if (length > LARGEST_BODY) return ready(() => TOO_LARGE);
      ready(enter(ledger, object, request, Buffer.concat(chunks)));
    });
  };
}

function enter(ledger: Ledger, object: Charge['object'], request: IncomingMessage, body: Buffer): Work {
  const order = readOrder(request.headers['content-type'] ?? '', body);
  if (order === undefined) return () => MALFORMED;
  const key = header(request, 'idempotency-key') ?? order.key;
  const entry = ledger.begin({
    ...order,
    object,
    intent: header(request, 'x-intent') ?? order.metadata['intent'],
    key,
    fingerprint: key === undefined ? '' : fingerprint(request, body),
  });
  switch (entry.kind) {
    case 'new':
      return () => jsonAnswer(200, entry.commit());
    case 'replay':
      return () => jsonAnswer(200, entry.charge, ['Idempotent-Replayed', 'true']);
    case 'busy':
      return () => BUSY;
    case 'mismatch':
      return () => MISMATCH;
  }
}

const TOO_LARGE = errorAnswer(413, 'invalid_request_error', 'A charge is at most 1 MiB.');
const MALFORMED = errorAnswer(400, 'invalid_request_error', 'The body is neither a form nor a JSON object.');
const BUSY: Answer = errorAnswer(
  409,
  'idempotency_error',
  'Another request with this Idempotency-Key is in progress.',
  'idempotency_key_in_use',
);
const MISMATCH: Answer = errorAnswer(
  400,
  'idempotency_error',
  'This Idempotency-Key was used for a request with other parameters.',
);

function header({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function fingerprint({ url = '' }: IncomingMessage, body: Buffer): string {
  return createHash('sha256').update(url).update('\n').update(body).digest('base64');
}

type Order = Pick<ChargeRequest, 'amount' | 'currency' | 'metadata' | 'key'>;

/** @returns undefined when the body is malformed; without a body, an order of nothing in particular */
function readOrder(contentType: string, body: Buffer): Order | undefined {
  const text = body.toString('utf8');
  if (text === '') return toOrder({}, {});
  if (!contentType.toLowerCase().includes('json') && !text.startsWith('{')) return readForm(text);
  const value = parseJson(text);
  if (!isRecord(value)) return undefined;
  const key = value['idempotency_key'];
  const order = toOrder(value, isRecord(value['metadata']) ? value['metadata'] : {});
  return typeof key === 'string' && key !== '' ? { ...order, key } : order;
}

function readForm(text: string): Order {
  const fields: Record<string, unknown> = {};
  const metadata: Record<string, unknown> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const key = /^metadata\[(.+)\]$/.exec(name)?.[1];
    if (key === undefined) fields[name] = value;
    else metadata[key] = value;
  }
  return toOrder(fields, metadata);
}

function toOrder(fields: Readonly<Record<string, unknown>>, metadata: Readonly<Record<string, unknown>>): Order {
  const amount = Number(fields['amount'] ?? Number.NaN);
  const currency = fields['currency'];
  return {
    amount: Number.isFinite(amount) ? amount : null,
    currency: typeof currency === 'string' ? currency : null,
    metadata: Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, String(value)])),
    key: undefined,
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
