/**
 * The place that knows an idempotency key: an endpoint; with accounts also the account that the write was sent with, and the key that
 * the upstream got, if it is not the client's own.
 */

const SEPARATOR = '@';
const KEY_SEPARATOR = '/';

/** Where a write was sent, and with which key. */
export interface KeyPlace {
  /** The label of the endpoint. */
  readonly label: string;
  /** The name of the account; undefined if there is none. */
  readonly account: string | undefined;
  /** The key that was derived for the upstream; undefined if it got the client's own. */
  readonly upstreamKey?: string | undefined;
}

/** The text that is recorded with a key. The name of an account has neither `@` nor `/`. */
export function formatKeyPlace({ label, account, upstreamKey }: KeyPlace): string {
  if (account === undefined && upstreamKey === undefined) return label;
  const key = upstreamKey === undefined ? '' : `${KEY_SEPARATOR}${upstreamKey}`;
  return `${account ?? ''}${key}${SEPARATOR}${label}`;
}

/** @param text as recorded */
export function parseKeyPlace(text: string): KeyPlace {
  const end = text.indexOf(SEPARATOR);
  if (end < 0) return { label: text, account: undefined };
  const [account, upstreamKey] = text.slice(0, end).split(KEY_SEPARATOR);
  return { label: text.slice(end + 1), account: account === '' ? undefined : account, upstreamKey };
}
