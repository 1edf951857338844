import type { Problem } from '../response/problem.ts';
import { requestProblem } from '../response/problem-details.ts';

/**
 * The problem for an error of Node's HTTP/1.1 parser, or a timeout of it. Undefined if there is no one to respond to: the
 * connection broke, or the client closed it in the middle of a message.
 */
export function problemForParseError({ code }: NodeJS.ErrnoException): Problem | undefined {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return HEADERS_TOO_LARGE;
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return CHUNK_EXTENSIONS_TOO_LARGE;
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return requestProblem(408, 'Request timeout', 'The request headers did not arrive in time.', 'headers_timeout');
    case 'HPE_INVALID_EOF_STATE':
      return undefined;
    default:
      return code?.startsWith('HPE_') === true ? MALFORMED_REQUEST : undefined;
  }
}

export const MALFORMED_REQUEST = requestProblem(400, 'Bad request', 'The request is not valid HTTP/1.1.', 'malformed');
const HEADERS_TOO_LARGE = requestProblem(
  431,
  'Headers too large',
  'The request line and headers exceed 32 KiB.',
  'headers_too_large',
);
const CHUNK_EXTENSIONS_TOO_LARGE = requestProblem(
  413,
  'Content too large',
  'The chunk extensions of the request body are too large.',
  'extensions_too_large',
);
