import { completeAddress } from '../../config/values/listen-address.ts';
import { suggest } from '../../config/values/suggest.ts';

export type AdminUrl = { readonly ok: true; readonly url: string } | { readonly ok: false; readonly message: string };

/** Parses the address of the admin port: a URL, `host:port` as in a configuration, or a port of this machine. */
export function parseAdminUrl(text: string): AdminUrl {
  if (text.startsWith('unix:')) {
    return { ok: false, message: `--admin: ${text} is a Unix socket, which top does not support; use a TCP port` };
  }
  const hasScheme = text.includes('://');
  const url = URL.parse(hasScheme ? text : `http://${completeAddress(text)}`);
  if (url === null || url.hostname === '') {
    return { ok: false, message: `--admin: '${text}' is not a URL such as http://127.0.0.1:9901` };
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    const near = suggest(url.protocol.slice(0, -1), ['http', 'https']) ?? 'http';
    return {
      ok: false,
      message: `--admin: the scheme ${url.protocol.slice(0, -1)} is unknown (did you mean ${near}?)`,
    };
  }
  // A configuration may listen on all addresses; clients connect to one.
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url.hostname === '[::]') url.hostname = '[::1]';
  return { ok: true, url: url.origin };
}
