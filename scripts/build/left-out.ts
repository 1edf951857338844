import type { Plugin } from 'rolldown';

/** Optional files that are never loaded here, by the end of their path, with the reason. */
const LEFT_OUT: readonly (readonly [RegExp, string])[] = [
  [
    /\/@fastify\/(ajv-compiler|fast-json-stringify-compiler)\/index\.js$/,
    'no route has a schema: src/http/server/fastify-no-schemas.ts',
  ],
  [/\/light-my-request\/index\.js$/, 'of Fastify: for tests'],
  [/\/undici\/lib\/milo\/[\w-]+\.js$/, 'an experimental parser: src/http/upstream/connector.ts has useMilo: false'],
  [/\/undici\/lib\/web\/(fetch\/(body|formdata)|webidl\/index)\.js$/, 'for bodies that are FormData'],
];

/**
 * undici 8.13.1 without fetch, caches, mocks and interceptors. Its index.js requires them all, so a bundler cannot remove
 * them.
 */
const UNDICI = `
  const Dispatcher = require('undici/lib/dispatcher/dispatcher.js');
  Object.assign(Dispatcher.prototype, require('undici/lib/api/index.js'));
  exports.Dispatcher = Dispatcher;
  exports.Client = require('undici/lib/dispatcher/client.js');
  exports.Pool = require('undici/lib/dispatcher/pool.js');
  exports.Agent = require('undici/lib/dispatcher/agent.js');
  exports.errors = require('undici/lib/core/errors.js');
  exports.buildConnector = require('undici/lib/core/connect.js');
`;

/** Replaces unreachable files by a module that throws an error with the reason. */
export function leftOut(): Plugin {
  return {
    name: 'left-out',
    load: {
      filter: { id: { include: [/\/undici\/index\.js$/, ...LEFT_OUT.map(([path]) => path)] } },
      handler(id) {
        if (id.endsWith('/undici/index.js')) return { code: UNDICI, moduleType: 'js' };
        const reason = LEFT_OUT.find(([path]) => path.test(id))?.[1] ?? '';
        const message = `${id.replace(/^.*\/node_modules\//, '')} is not part of the bundle (${reason})`;
        return { code: `throw new Error(${JSON.stringify(message)});`, moduleType: 'js' };
      },
    },
  };
}
