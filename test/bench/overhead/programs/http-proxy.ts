// @fastify/http-proxy as in its README.
//
//   node http-proxy.ts UPSTREAM

import proxy from '@fastify/http-proxy';
import fastify from 'fastify';

const app = fastify({ keepAliveTimeout: 600_000 });
await app.register(proxy, { upstream: process.argv[2] ?? '' });
console.log(`listening on ${await app.listen({ host: '127.0.0.1', port: 0 })}`);
