import type { AccountNotice, SharedQuarantine } from '../../core/accounts/account-notice.ts';
import { MAX_NOTICE_CLIENTS, shiftNotice } from '../../core/accounts/account-notice.ts';
import type { Millis } from '../../core/scalars.ts';

/** The version of the text. A process of another version ignores it. */
const VERSION = 1;

/** Hashes of clients are shorter. A longer text of another program is not kept. */
const MAX_HASH_LENGTH = 64;

/**
 * A line of JSON, with times of Redis' clock, the only one that the processes have in common.
 * @param sender names this process: Redis sends it its own messages too
 * @param offset how far Redis' clock is ahead of the local one
 */
export function formatNotice(notice: AccountNotice, sender: string, offset: Millis): string {
  return JSON.stringify({ version: VERSION, sender, ...shiftNotice(notice, offset) });
}

/** Undefined for another text, because other programs may publish too, and for a notice of this process. */
export function parseNotice(line: string, receiver: string, offset: Millis): AccountNotice | undefined {
  try {
    const parsed: unknown = JSON.parse(line);
    if (!isNotice(parsed) || Reflect.get(parsed, 'sender') === receiver) return undefined;
    const { upstream, account, credentialTag, acceptedSentAt, quarantine } = parsed;
    return shiftNotice({ upstream, account, credentialTag, acceptedSentAt, quarantine }, -offset);
  } catch {
    return undefined;
  }
}

type TypeName = 'number' | 'string' | 'boolean' | 'object';

const NOTICE_FIELDS = {
  version: 'number',
  sender: 'string',
  upstream: 'string',
  account: 'string',
  credentialTag: 'string',
};

const QUARANTINE_FIELDS: Readonly<Record<keyof SharedQuarantine, TypeName>> = {
  ...{ since: 'number', evidenceSentAt: 'number', interval: 'number', probeAt: 'number', trialAt: 'number' },
  ...{ isCommon: 'boolean', fairnessKey: 'string', clients: 'object' },
};

function isNotice(parsed: unknown): parsed is AccountNotice {
  if (!hasFields(parsed, NOTICE_FIELDS) || Reflect.get(parsed, 'version') !== VERSION) return false;
  const acceptedSentAt: unknown = Reflect.get(parsed, 'acceptedSentAt');
  const quarantine: unknown = Reflect.get(parsed, 'quarantine');
  if (acceptedSentAt !== undefined && !Number.isFinite(acceptedSentAt)) return false;
  return quarantine === undefined || isQuarantine(quarantine);
}

function isQuarantine(value: unknown): value is SharedQuarantine {
  if (!hasFields(value, QUARANTINE_FIELDS)) return false;
  const clients: unknown = Reflect.get(value, 'clients');
  if (!Array.isArray(clients) || clients.length > MAX_NOTICE_CLIENTS) return false;
  return clients.every(isHash) && isHash(Reflect.get(value, 'fairnessKey'));
}

function isHash(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_HASH_LENGTH;
}

/** Numbers have to be finite: `1e999` is Infinity in JSON. */
function hasFields(value: unknown, fields: Readonly<Record<string, string>>): value is object {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(fields).every(([name, type]) => {
    const field: unknown = Reflect.get(value, name);
    return type === 'number' ? Number.isFinite(field) : typeof field === type;
  });
}
