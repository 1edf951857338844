import type { FastifyServerOptions } from 'fastify';

/**
 * No route of ours has a schema. Left to itself, Fastify 5.12.8 (lib/schema-controller.js) loads its compilers of schemas,
 * Ajv with them, all the same: a tenth of the time that the program took to start, and 3 MB.
 */
export const NO_SCHEMAS: NonNullable<FastifyServerOptions['schemaController']> = {
  compilersFactory: { buildValidator: refuse, buildSerializer: refuse },
};

function refuse(): never {
  throw new Error('routes have no schemas here');
}
