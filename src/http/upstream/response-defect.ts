/** What was wrong with an answer that cannot be read, or cannot be passed on: `reset`, more closely. */
export type Flaw = 'malformed' | 'headers_too_large' | 'transfer_coding' | 'unwritable';

/** An answer that undici has read, and that is not one to pass on. */
export class FlawedAnswer extends Error {
  readonly flaw: Flaw;

  constructor(flaw: Flaw) {
    super(flaw);
    this.flaw = flaw;
  }
}

/** Why an answer whose head has been read cannot be passed on; undefined when it can. */
export function flawOfHead(status: number, headers: readonly string[]): Flaw | undefined {
  if (status < 100 || status === 101) return 'malformed'; // no upgrade was asked for
  return hasOtherCoding(headers) ? 'transfer_coding' : undefined;
}

/** What undici 8 tells of an answer that it could not read; undefined: it has broken off. */
export function flawOf(error: Error): Flaw | undefined {
  if (error instanceof FlawedAnswer) return error.flaw;
  const code = 'code' in error ? error.code : undefined;
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return 'headers_too_large';
  // The second: nonsense behind a Content-Length. The third: an upgrade.
  if (error.name === 'HTTPParserError' || code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return 'malformed';
  return error.message === 'bad upgrade' ? 'malformed' : undefined;
}

/** Only chunks are undone here: what another coding has wrapped would go on without a label (RFC 9112 §6.1). */
function hasOtherCoding(headers: readonly string[]): boolean {
  let codings = 0;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length !== 17 || name.toLowerCase() !== 'transfer-encoding') continue;
    codings += 1;
    if (codings > 1 || !/^(?:chunked|identity)[\t ]*$/i.test(headers[i + 1] ?? '')) return true;
  }
  return false;
}
