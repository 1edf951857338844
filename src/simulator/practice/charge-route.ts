import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { PracticeResponse } from './practice-response.ts';
import { errorResponse, jsonResponse } from './practice-response.ts';
import type { Charge, ChargeRequest, ChargeLedger } from './charge-ledger.ts';
import type { PracticeRoute, MakeResponse } from './practice-route.ts';
import { onBodyEnd } from './practice-route.ts';

const MAX_BODY_BYTES = 1024 * 1024;

/**
 * Makes the charge that the body describes. The key is claimed when the body has arrived; the charge is committed when
 * the work is done.
 */
export function chargeRoute(ledger: ChargeLedger, object: Charge['object']): PracticeRoute {
  return (request, ready) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= MAX_BODY_BYTES) chunks.push(chunk);
    });
    onBodyEnd(request, (whole) => {
      if (!whole) return ready(undefined);
      if (length > MAX_BODY_BYTES) return ready(() => TOO_LARGE);
      ready(beginCharge(ledger, object, request, Buffer.concat(chunks)));
    });
  };
}

function beginCharge(
  ledger: ChargeLedger,
  object: Charge['object'],
  request: IncomingMessage,
  body: Buffer,
): MakeResponse {
  const charge = parseChargeFields(request.headers['content-type'] ?? '', body);
  if (charge === undefined) return () => MALFORMED;
  const key = header(request, 'idempotency-key') ?? charge.key;
  const outcome = ledger.begin({
    ...charge,
    object,
    intent: header(request, 'x-intent') ?? charge.metadata['intent'],
    key,
    fingerprint: key === undefined ? '' : fingerprint(request, body),
  });
  switch (outcome.kind) {
    case 'new':
      return () => jsonResponse(200, outcome.commit());
    case 'replay':
      return () => jsonResponse(200, outcome.charge, ['Idempotent-Replayed', 'true']);
    case 'busy':
      return () => KEY_IN_USE;
    case 'mismatch':
      return () => KEY_MISMATCH;
  }
}

const TOO_LARGE = errorResponse(413, 'invalid_request_error', 'A charge is at most 1 MiB.');
const MALFORMED = errorResponse(400, 'invalid_request_error', 'The body is neither a form nor a JSON object.');
const KEY_IN_USE: PracticeResponse = errorResponse(
  409,
  'idempotency_error',
  'Another request with this Idempotency-Key is in progress.',
  'idempotency_key_in_use',
);
const KEY_MISMATCH: PracticeResponse = errorResponse(
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

type ChargeFields = Pick<ChargeRequest, 'amount' | 'currency' | 'metadata' | 'key'>;

/** @returns undefined if the body is malformed; an empty body is a charge with defaults */
function parseChargeFields(contentType: string, body: Buffer): ChargeFields | undefined {
  const text = body.toString('utf8');
  if (text === '') return toChargeFields({}, {});
  if (!contentType.toLowerCase().includes('json') && !text.startsWith('{')) return parseForm(text);
  const value = parseJson(text);
  if (!isRecord(value)) return undefined;
  const key = value['idempotency_key'];
  const order = toChargeFields(value, isRecord(value['metadata']) ? value['metadata'] : {});
  return typeof key === 'string' && key !== '' ? { ...order, key } : order;
}

function parseForm(text: string): ChargeFields {
  const fields: Record<string, unknown> = {};
  const metadata: Record<string, unknown> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const key = /^metadata\[(.+)\]$/.exec(name)?.[1];
    if (key === undefined) fields[name] = value;
    else metadata[key] = value;
  }
  return toChargeFields(fields, metadata);
}

function toChargeFields(
  fields: Readonly<Record<string, unknown>>,
  metadata: Readonly<Record<string, unknown>>,
): ChargeFields {
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
