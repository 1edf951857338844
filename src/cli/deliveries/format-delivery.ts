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
    ...(kind === 'write' ? ([['kind', 'a write that is sent later']] as const) : []),
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
  const { acceptedAt, attempts, lastAttempt } = row;
  const last: readonly StoryLine[] =
    lastAttempt === null ? [] : [[lastAttempt.at, describeAttempt(lastAttempt, attempts)]];
  return [[acceptedAt, 'accepted'], ...last, ...describePresent(row)];
}

function describeAttempt({ tookSeconds, status, reason }: LastAttempt, attempts: number): string {
  if (reason === UNREADABLE) return 'not sent: the stored request cannot be decrypted';
  const which = attempts === 0 ? 'last attempt of an earlier schedule' : `attempt ${attempts}`;
  return `${which}: ${describeResult(status, reason)} after ${humanizeDuration(1000 * tookSeconds)}`;
}

/** `secret` has changed, or the database is damaged. */
const UNREADABLE = 'unreadable';

function describeResult(status: number | null, reason: string | null): string {
  if (reason === null) return `acknowledged with ${status ?? 'a response'}`;
  if (reason === `status_${status}`) return `not acknowledged, the upstream responded with ${status}`;
  if (reason === 'not_acknowledged') return `not acknowledged, acknowledgedBy does not accept the response (${status})`;
  return `failed, ${FAILURES.get(reason) ?? reason}`;
}

const FAILURES: ReadonlyMap<string, string> = new Map([
  ['connect', 'no connection to the upstream (connect)'],
  ['reset', 'the connection was closed before a whole response (reset)'],
  ['timeout', 'no response in time (timeout)'],
]);

function describePresent({ state, attempts, nextAttemptAt, sendingSince, endedAt }: DeliveryRow): readonly StoryLine[] {
  switch (state) {
    case 'waiting':
      return [[nextAttemptAt ?? '', `attempt ${attempts + 1} is due`]];
    case 'sending':
      return [[sendingSince ?? '', `attempt ${attempts + 1} began, and is under way`]];
    case 'delivered':
      return [[endedAt ?? '', 'delivered']];
    case 'dead':
      return [[endedAt ?? '', 'dead: no further attempt is made, unless it is retried']];
    case 'unknown':
      return [[endedAt ?? '', 'unknown: an attempt may have taken effect, and no response says whether it has']];
    case 'canceled':
      return [[endedAt ?? '', 'canceled by an operator']];
  }
}

function formatMessage(message: NonNullable<DeliveryDetails['message']> | null): string {
  if (message === null) return 'The request has expired, or cannot be decrypted because secret has changed.\n';
  const { method, target, headers, encoding, body, peer } = message;
  return formatHttp(`request from ${peer}`, [`${method} ${target}`, ...headers.map(formatHeader)], encoding, body);
}

function formatResponse(response: NonNullable<DeliveryDetails['response']> | null): string {
  if (response === null) return 'The response has expired, or cannot be decrypted because secret has changed.\n';
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
