import type { Problem } from '../response/problem-details.ts';
import { fault } from '../response/problem-details.ts';

/**
 * What is told where the parser gave up, or was given up on. Undefined where nothing is to be told: the connection broke,
 * or its client has closed it in the middle of a message.
 */
export function problemOfParser({ code }: NodeJS.ErrnoException): Problem | undefined {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return HEADERS_TOO_LARGE;
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return EXTENSIONS_TOO_LARGE;
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return fault(408, 'Request timeout', 'The headers did not come in time.', 'headers_timeout');
    case 'HPE_INVALID_EOF_STATE':
      return undefined;
    default:
      return code?.startsWith('HPE_') === true ? MALFORMED : undefined;
  }
}

export const MALFORMED = fault(400, 'Bad request', 'This is not HTTP/1.1.', 'malformed');
const HEADERS_TOO_LARGE = fault(
  431,
  'Headers too large',
  'The request line and the headers are larger than 32 KiB together.',
  'headers_too_large',
);
const EXTENSIONS_TOO_LARGE = fault(
  413,
  'Content too large',
  'The chunks of the body have more extensions than anybody needs.',
  'extensions_too_large',
);
