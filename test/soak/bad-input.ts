const HOST = 'Host: soak\r\n';
const CLOSE = 'Connection: close\r\n';

/** Input that a proxy must reject without harm, each on its own connection. */
export const BAD_INPUT: readonly string[] = [
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  'nonsense\r\n\r\n',
  `GET / HTTP/9.9\r\n${HOST}\r\n`,
  `GE\x00T / HTTP/1.1\r\n${HOST}\r\n`,
  `GET / HTTP/1.1\r\n${HOST}No colon\r\n\r\n`,
  `GET / HTTP/1.1\r\n${HOST}X-Long: ${'x'.repeat(40_000)}\r\n\r\n`,
  `GET / HTTP/1.1\r\n${HOST}${HOST}${CLOSE}\r\n`,
  `GET / HTTP/1.1\r\n${CLOSE}\r\n`,
  `GET //bad/path HTTP/1.1\r\n${HOST}${CLOSE}\r\n`,
  `GET /bad/../path HTTP/1.1\r\n${HOST}${CLOSE}\r\n`,
  `GET /bad/%2e%2e/path HTTP/1.1\r\n${HOST}${CLOSE}\r\n`,
  `GET http://elsewhere/ HTTP/1.1\r\n${HOST}${CLOSE}\r\n`,
  `POST /bad HTTP/1.1\r\n${HOST}${CLOSE}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  `POST /bad HTTP/1.1\r\n${HOST}${CLOSE}Content-Length: -1\r\n\r\n`,
  `POST /bad HTTP/1.1\r\n${HOST}${CLOSE}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  `POST /bad HTTP/1.1\r\n${HOST}${CLOSE}Transfer-Encoding: chunked\r\n\r\nnot a size\r\n`,
  `CONNECT elsewhere:443 HTTP/1.1\r\n${HOST}\r\n`,
  `GET /bad HTTP/1.1\r\n${HOST}${CLOSE}Expect: miracles\r\n\r\n`,
];
