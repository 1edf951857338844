import { suggest } from '../../config/values/suggest.ts';

export type AdminUrl = { readonly ok: true; readonly url: string } | { readonly ok: false; readonly message: string };

/** Where the admin port is, as people write it: `http://127.0.0.1:9901`, or as a config has it, without the scheme. */
export function readAdminUrl(text: string): AdminUrl {
  if (text.startsWith('unix:')) {
    return { ok: false, message: `--admin: ${text} is a Unix socket, which cannot be followed; give it a port` };
  }
  const hasScheme = text.includes('://');
  const url = URL.parse(hasScheme ? text : `http://${text}`);
  if (url === null || url.hostname === '') {
    return { ok: false, message: `--admin: '${text}' is no URL such as http://127.0.0.1:9901` };
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    const near = suggest(url.protocol.slice(0, -1), ['http', 'https']) ?? 'http';
    return {
      ok: false,
      message: `--admin: the scheme ${url.protocol.slice(0, -1)} is unknown (did you mean ${near}?)`,
    };
  }
  // A config says where to listen, and nobody can connect to all addresses.
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url.hostname === '[::]') url.hostname = '[::1]';
  return { ok: true, url: url.origin };
}
