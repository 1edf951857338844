import { parseListField } from '../../core/http-semantics/list-field.ts';
import { filterHeaders } from '../headers/raw-headers.ts';
import type { DispatchRequest } from './dispatch-request.ts';

/** Why a response cannot be parsed or forwarded. Such an attempt failed with `reset`. */
export type ResponseDefect = 'malformed' | 'headers_too_large' | 'transfer_coding' | 'unwritable';

/**
 * The largest names and values of a response head, an interim one or trailers, in bytes. undici's default of 16 KiB would make the
 * outcome of a write unknown because of large cookies; Envoy allows 60 KiB.
 */
export const MAX_RESPONSE_HEADERS = 64 * 1024;

/** A response that undici or node:http2 parsed and that cannot be forwarded. */
export class DefectiveResponseError extends Error {
  readonly defect: ResponseDefect;

  constructor(defect: ResponseDefect) {
    super(defect);
    this.defect = defect;
  }
}

/**
 * Why a response with this head cannot be forwarded; undefined if it can.
 * @param upgrade the protocol that the request offered to change to
 */
export function defectOfHead(
  status: number,
  headers: readonly string[],
  upgrade?: DispatchRequest['upgrade'],
): ResponseDefect | undefined {
  if (status === 101) return isUpgradeTo(headers, upgrade) ? undefined : 'malformed';
  if (status < 100) return 'malformed';
  return hasUnknownTransferCoding(headers) ? 'transfer_coding' : undefined;
}

/** The defect that undici 8 reports; undefined if the connection broke instead. */
export function defectOfError(error: Error): ResponseDefect | undefined {
  if (error instanceof DefectiveResponseError) return error.defect;
  const code = 'code' in error ? error.code : undefined;
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return 'headers_too_large';
  // The second is an invalid Content-Length, the last a change of protocol.
  if (error.name === 'HTTPParserError' || code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return 'malformed';
  return error.message === 'bad upgrade' ? 'malformed' : undefined;
}

/** Whether a 101 changes to this protocol and to no other (RFC 9110 §7.8). */
function isUpgradeTo(headers: readonly string[], protocol: DispatchRequest['upgrade']): boolean {
  const upgrade = filterHeaders(headers, (name) => name === 'upgrade').filter((_, i) => i % 2 === 1);
  return parseListField(upgrade.join().toLowerCase()).join() === protocol;
}

/** Only chunked is decoded here: a body in another coding would be forwarded without its label (RFC 9112 §6.1). */
function hasUnknownTransferCoding(headers: readonly string[]): boolean {
  let codings = 0;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length !== 17 || name.toLowerCase() !== 'transfer-encoding') continue;
    codings += 1;
    if (codings > 1 || !/^(?:chunked|identity)[\t ]*$/i.test(headers[i + 1] ?? '')) return true;
  }
  return false;
}
