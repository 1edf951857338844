/** Slips in URLs, as far as they can be told from what was meant. For suggestions alone: nothing is read this way. */
import ipaddr from 'ipaddr.js';

/** Without white space and quotes around it, slashes for backslashes, and no space beside a colon or a slash. */
export function tidyUrl(text: string): string {
  return text
    .trim()
    .replace(/^(["'<])(.*)["'>]$/s, '$2')
    .replaceAll('\\', '/')
    .replace(/\s*([:/])\s*/g, '$1');
}

/** A text that may have a scheme before its host, in whatever way the two are parted. */
export interface Parted {
  readonly word: string;
  readonly behind: string;
  /** `word:80`: rather a host and its port. */
  readonly isPort: boolean;
  /** `word//x`: rather a host and a path, unless the word is a scheme. */
  readonly hasColon: boolean;
}

/** `http:/host`, `http;//host`, `http//host`, `host:80`; undefined where nothing of the kind is in it. */
export function partScheme(text: string): Parted | undefined {
  const [, word, mark, behind] = /^([a-z][a-z0-9+.-]*)(:\/*|;\/+|\/\/+)(.*)$/is.exec(text) ?? [];
  if (word === undefined || mark === undefined || behind === undefined) return undefined;
  return { word, behind, isPort: mark === ':' && /^\d{1,5}(?:[/?#]|$)/.test(behind), hasColon: !mark.startsWith('/') };
}

const HOST = /^(?:\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?)(?::\d{1,5})?$/i;

/** A host with or without a port: with brackets around IPv6, and of a port alone on this machine; undefined where it is none. */
export function completeHost(text: string): string | undefined {
  if (/^:?\d{1,5}$/.test(text)) return `localhost:${text.replace(':', '')}`;
  const cut = text.lastIndexOf(':');
  if (/^\d+$/.test(text.slice(cut + 1)) && ipaddr.IPv6.isValid(text.slice(0, cut))) {
    return `[${text.slice(0, cut)}]${text.slice(cut)}`;
  }
  if (ipaddr.IPv6.isValid(text)) return `[${text}]`;
  return HOST.test(text) ? text : undefined;
}
