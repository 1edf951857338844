/** Texts about one delivery for a terminal. */
import type { ChangedDelivery, DeliveryDetails, DeliveryRow } from '../../admin/page/api-types.ts';
import { humanizeDuration, printable } from '../../telemetry/format-values.ts';

type LastAttempt = NonNullable<DeliveryRow['lastAttempt']>;
type StoryLine = readonly [at: string, text: string];

/** All about one, and its request if the details have it. */
export function formatDelivery(details: DeliveryDetails): string {
  const { message, response } = details;
  const parts = [
    message === undefined ? '' : formatMessage(message),
    response === undefined ? '' : formatResponse(response),
  ];
  return [formatRow(details), ...parts.filter((part) => part !== '')].join('\n');
}

export function formatChangedDelivery(changed: ChangedDelivery): string {
  return `${formatRow(changed)}\n${printable(changed.notes.join(' '))}\n`;
}

function formatRow(row: DeliveryRow): string {
  const { id, kind, state, route, upstream, client, eventId, orderKey } = row;
  const facts = [
    ...(kind === 'write' ? ([['kind', 'async write']] as const) : []),
    ['route', route],
    ['upstream', upstream],
    ['client', client],
    ['event id', eventId ?? 'none'],
    ['order key', orderKey ?? 'none'],
  ] as const;
  const lines = [
    `${id}: ${state}`,
    ...facts.map(([name, text]) => `  ${name.padEnd(11)}${text}`),
    '',
    ...describeCourse(row).map(([at, text]) => `  ${at.padEnd(26)}${text}`),
  ];
  return lines.map((line) => `${printable(line)}\n`).join('');
}

/** What has happened to it, and what comes next. */
function describeCourse(row: DeliveryRow): readonly StoryLine[] {
  const { acceptedAt, lastAttempt } = row;
  const last: readonly StoryLine[] = lastAttempt === null ? [] : [[lastAttempt.at, describeAttempt(lastAttempt, row)]];
  return [[acceptedAt, 'accepted'], ...last, ...describePresent(row)];
}

function describeAttempt({ tookSeconds, status, reason }: LastAttempt, { kind, attempts }: DeliveryRow): string {
  const notSent = NOT_SENT.get(reason ?? '');
  if (notSent !== undefined) return `not sent: ${notSent}`;
  if (reason === LEASE_ENDED) return LEASE_ENDED_RESULT;
  const which = attempts === 0 ? 'last attempt of an earlier schedule' : `attempt ${attempts}`;
  const result = kind === 'write' ? describeWriteResult(status, reason) : describeResult(status, reason);
  return `${which}: ${result} after ${humanizeDuration(1000 * tookSeconds)}`;
}

/** Reasons that a store records in place of an attempt. */
const NOT_SENT: ReadonlyMap<string, string> = new Map([
  // `secret` has changed, or the database is damaged.
  ['unreadable', 'the stored request cannot be decrypted'],
  ['expired', 'it has waited for longer than limits.deliveryAge'],
]);

/** What a store records in place of an attempt whose replica has not reported its end. */
const LEASE_ENDED = 'unknown_lease_ended';
const LEASE_ENDED_RESULT =
  'may have taken effect: the replica that had claimed it was killed, suspended or cut off from Redis';

function describeResult(status: number | null, reason: string | null): string {
  if (reason === null) return `acknowledged with ${status ?? 'a response'}`;
  if (reason === 'not_acknowledged') return `not acknowledged, acknowledgedBy does not accept the response (${status})`;
  return reason === `status_${status}`
    ? `not acknowledged, ${describeCause(reason)}`
    : `failed, ${describeCause(reason)}`;
}

/** Success or not, a response that settles a write is its result. */
function describeWriteResult(status: number | null, reason: string | null): string {
  if (reason === null) return `decided, the upstream responded with ${status ?? 'a response'}`;
  if (reason.startsWith(UNKNOWN)) return `may have taken effect, ${describeCause(reason.slice(UNKNOWN.length))}`;
  return `failed, ${describeCause(reason)}`;
}

/** The reason of an attempt of a write that may have taken effect begins with it. */
const UNKNOWN = 'unknown_';

function describeCause(reason: string): string {
  const [, status] = /^status_(\d{3})$/.exec(reason) ?? [];
  return status === undefined ? (FAILURES.get(reason) ?? reason) : `the upstream responded with ${status}`;
}

const FAILURES: ReadonlyMap<string, string> = new Map([
  ['connect', 'no connection to the upstream (connect)'],
  ['reset', 'the connection was closed before a whole response (reset)'],
  ['timeout', 'no response in time (timeout)'],
]);

function describePresent(row: DeliveryRow): readonly StoryLine[] {
  const { kind, state, attempts, nextAttemptAt, sendingSince, endedAt } = row;
  switch (state) {
    case 'waiting':
      return [[nextAttemptAt ?? '', `attempt ${attempts + 1} is due`]];
    case 'sending':
      return [[sendingSince ?? '', `attempt ${attempts + 1} began, and is in progress`]];
    case 'delivered':
      return [[endedAt ?? '', kind === 'write' ? 'delivered: the upstream has decided about the write' : 'delivered']];
    case 'dead':
      return [[endedAt ?? '', 'dead: no further attempt is made, unless it is retried']];
    case 'unknown':
      return [[endedAt ?? '', 'unknown: an attempt may have taken effect, and no response says whether it has']];
    case 'canceled':
      return [[endedAt ?? '', 'canceled by an operator']];
  }
}

const NOT_READABLE = 'is no longer stored, or cannot be decrypted because secret has changed.\n';

function formatMessage(message: NonNullable<DeliveryDetails['message']> | null): string {
  if (message === null) return `The request ${NOT_READABLE}`;
  const { method, target, headers, encoding, body, peer } = message;
  return formatHttp(`request from ${peer}`, [`${method} ${target}`, ...headers.map(formatHeader)], encoding, body);
}

function formatResponse(response: NonNullable<DeliveryDetails['response']> | null): string {
  if (response === null) return `The response ${NOT_READABLE}`;
  const { status, headers, encoding, body } = response;
  const title = body === null ? 'response, without its body, which is too long' : 'response';
  return formatHttp(title, [String(status), ...headers.map(formatHeader)], encoding, body ?? '');
}

function formatHeader([name, value]: readonly [name: string, value: string]): string {
  return `${name}: ${value}`;
}

function formatHttp(title: string, head: readonly string[], encoding: 'text' | 'base64', body: string): string {
  const text = encoding === 'text' ? body.split(/\r?\n/).map(printableWithTabs) : [body];
  const lines = [
    `${title}${encoding === 'base64' ? ', with its body in base64' : ''}:`,
    '',
    ...head.map(printable),
    ...(body === '' ? [] : ['', ...text]),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function printableWithTabs(line: string): string {
  return line.split('\t').map(printable).join('\t');
}
