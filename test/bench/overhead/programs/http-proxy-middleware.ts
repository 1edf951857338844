// http-proxy-middleware over node:http, as in its README for servers without a framework, with a keep-alive agent, which it
// does not use by default.
//
//   node http-proxy-middleware.ts UPSTREAM

import { Agent, createServer } from 'node:http';
import { createProxyMiddleware } from 'http-proxy-middleware';

const pass = createProxyMiddleware({
  target: process.argv[2] ?? '',
  changeOrigin: true,
  agent: new Agent({ keepAlive: true, maxSockets: 256 }),
});
const server = createServer((request, response) => {
  void pass(request, response, () => response.writeHead(404).end());
});
server.keepAliveTimeout = 600_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) console.log(`listening on http://127.0.0.1:${address.port}`);
});
