/** Typing errors in URLs, for suggestions only: nothing is accepted this way. */
import ipaddr from 'ipaddr.js';
import { addMissingBrackets } from './host.ts';

/**
 * The text without surrounding white space and quotes, with slashes for backslashes, and without spaces next to colons and
 * slashes.
 */
export function cleanUrlText(text: string): string {
  return text
    .trim()
    .replace(/^(["'<])(.*)["'>]$/s, '$2')
    .replaceAll('\\', '/')
    .replace(/(?<!\s)\s+(?=[:/])|(?<=[:/])\s+/g, '');
}

/** A text split at its scheme, whatever separates the two. */
export interface SchemeAndRest {
  readonly scheme: string;
  readonly rest: string;
  /** `word:80`: probably a host and its port. */
  readonly isPort: boolean;
  /** False for `word//x`: probably a host and a path, unless the word is a scheme. */
  readonly hasColon: boolean;
}

/** Splits `http:/host`, `http;//host`, `http//host`, `host:80`; undefined for any other text. */
export function splitScheme(text: string): SchemeAndRest | undefined {
  const [, word, mark, behind] = /^([a-z][a-z0-9+.-]*)(:\/*|;\/+|\/\/+)(.*)$/is.exec(text) ?? [];
  if (word === undefined || mark === undefined || behind === undefined) return undefined;
  return {
    scheme: word,
    rest: behind,
    isPort: mark === ':' && /^\d{1,5}(?:[/?#]|$)/.test(behind),
    hasColon: !mark.startsWith('/'),
  };
}

const HOST_PATTERN = /^(?:\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?)(?::\d{1,5})?$/i;

/** A host with or without a port: adds brackets to IPv6, and localhost to a port alone; undefined for any other text. */
export function completeHost(text: string): string | undefined {
  if (/^:?\d{1,5}$/.test(text)) return `localhost:${text.replace(':', '')}`;
  const bracketed = /:\d+$/.test(text) ? addMissingBrackets(text) : undefined;
  if (bracketed !== undefined) return bracketed;
  if (ipaddr.IPv6.isValid(text)) return `[${text}]`;
  return HOST_PATTERN.test(text) ? text : undefined;
}
