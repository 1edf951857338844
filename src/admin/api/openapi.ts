import { z } from 'zod';
import { QUERIES } from './query-schemas.ts';
import type { RouteName } from './api-routes.ts';
import { ROUTES } from './api-routes.ts';
import { ApiSchemas } from './response-schemas.ts';

interface Told {
  readonly summary: string;
  /** The name of a schema; undefined for a document of another form. */
  readonly answer?: string;
  readonly type?: string;
  /** The type of what is sent. */
  readonly body?: string;
}

const TOLD: Readonly<Record<RouteName, Told>> = {
  status: { summary: 'How all stands: upstreams, requests, clients', answer: 'Status' },
  clients: { summary: 'Clients, those in most trouble first', answer: 'ClientsPage' },
  requests: { summary: 'Requests that have ended, newest first', answer: 'RequestsPage' },
  timeline: { summary: 'Cuts, blocks, reloads, actions: newest first', answer: 'TimelinePage' },
  events: {
    summary:
      'Server-sent events: status (StatusFrame, each second), requests (RequestsFrame), timeline (TimelineEvent, as it happens)',
    type: 'text/event-stream',
  },
  config: { summary: 'The configuration in effect, secrets masked', answer: 'EffectiveConfig' },
  openapi: { summary: 'This document' },
  explain: {
    summary: 'Why a request ended as it did, by the Tidegate-Request-Id of its answer; as text where that is asked for',
    answer: 'Explanation',
  },
  pin: { summary: 'Hold the rate of an upstream, whatever is learned', answer: 'SteeredUpstream' },
  unpin: { summary: 'Go by what is learned again', answer: 'SteeredUpstream' },
  block: { summary: 'Let nothing pass to an upstream', answer: 'SteeredUpstream' },
  unblock: {
    summary: 'Let requests pass again; where the upstream itself blocks, probe at once',
    answer: 'SteeredUpstream',
  },
  reset: { summary: 'Forget what a client was told, and that its allowance was cut', answer: 'ResetClient' },
  validate: { summary: 'Whether a configuration would do', answer: 'Valid', body: 'application/yaml' },
  drain: { summary: 'Go away, as on SIGTERM', answer: 'Draining' },
};

/** The OpenAPI 3.1 document of the admin API, made of its schemas. */
export function describeApi(): Readonly<Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of ROUTES) (paths[route.path] ??= {})[route.method.toLowerCase()] = describeRoute(route);
  return {
    openapi: '3.1.0',
    info: { title: 'Tidegate: the admin API', version: '1', license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/' }],
    security: [{}, { token: [] }],
    paths,
    components: {
      schemas: namedSchemas(),
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: 'admin.token of the configuration' } },
    },
  };
}

function describeRoute({ method, path, name }: (typeof ROUTES)[number]): Readonly<Record<string, unknown>> {
  const { summary, answer, body, type = 'application/json' } = TOLD[name];
  const schema = answer === undefined ? {} : refTo(answer);
  return {
    operationId: name,
    summary,
    parameters: [...pathParameters(path), ...queryParameters(QUERIES[name])],
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { [body]: { schema: { type: 'string' } } } } }),
    ...(method === 'POST' ? { security: [{ token: [] }] } : {}),
    responses: {
      200: { description: 'Well', content: { [type]: { schema } } },
      default: {
        description: 'A problem (RFC 9457)',
        content: { 'application/problem+json': { schema: refTo('Problem') } },
      },
    },
  };
}

function refTo(id: string): Readonly<Record<string, string>> {
  return { $ref: `#/components/schemas/${id}` };
}

function namedSchemas(): Readonly<Record<string, unknown>> {
  const { schemas } = z.toJSONSchema(ApiSchemas, { uri: (id) => `#/components/schemas/${id}` });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutPlace(schema)]));
}

/** In the document, it stands where it is. */
function withoutPlace(schema: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key !== '$schema' && key !== '$id'));
}

function pathParameters(path: string): readonly unknown[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => {
    return { name, in: 'path', required: true, schema: { type: 'string' } };
  });
}

function queryParameters(query: z.ZodObject): readonly unknown[] {
  return Object.entries(query.shape).map(([name, type]) => {
    const { description, ...schema } = withoutPlace(z.toJSONSchema(type, { io: 'input' }));
    const required = !z.safeParse(type, undefined).success;
    return { name, in: 'query', required, schema, ...(description === undefined ? {} : { description }) };
  });
}
