// The upstream of the benchmark, which responds at once. It prints its address.

import { createServer } from 'node:http';

const BODIES = new Map([
  ['/1k', Buffer.alloc(1024, 'a')],
  ['/1m', Buffer.alloc(1024 * 1024, 'a')],
]);

const server = createServer((request, response) => {
  const body = BODIES.get(request.url ?? '') ?? BODIES.get('/1k');
  const answer = (): void => {
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': body?.length ?? 0 }).end(body);
  };
  if (request.method === 'GET') return answer();
  request.on('end', answer).resume();
});
server.keepAliveTimeout = 600_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) console.log(`listening on http://127.0.0.1:${address.port}`);
});
