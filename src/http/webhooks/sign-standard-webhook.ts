import { createHmac } from 'node:crypto';
import type { Millis } from '../../core/scalars.ts';

/** What is signed of one request. */
export interface StandardWebhook {
  /** Without a full stop, which ends it in what is signed. */
  readonly id: string;
  readonly body: Uint8Array;
  /** Milliseconds of the epoch. */
  readonly at: Millis;
}

/**
 * The headers of a webhook with a signature by each key, names and values in turn
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#signature-scheme).
 */
export function signStandardWebhook(keys: readonly Buffer[], { id, body, at }: StandardWebhook): string[] {
  const timestamp = String(Math.floor(at / 1000));
  const signatures = keys.map((key) => {
    const digest = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
    return `v1,${digest}`;
  });
  return ['webhook-id', id, 'webhook-timestamp', timestamp, 'webhook-signature', signatures.join(' ')];
}

/** A receiver may read any of them as a part of the signature: also those of Svix, and names with underscores, as in CGI. */
const SIGNATURE_HEADER = /^(?:webhook|svix)[-_](?:id|timestamp|signature)$/i;

/** @param raw names and values in turn */
export function withoutStandardHeaders(raw: readonly string[]): readonly string[] {
  return raw.filter((_, i) => !SIGNATURE_HEADER.test(raw[i - (i % 2)] ?? ''));
}
