import { z } from 'zod';
import { QUERY_SCHEMAS } from './query-schemas.ts';
import type { ApiRouteName } from './api-routes.ts';
import { API_ROUTES } from './api-routes.ts';
import { ApiSchemas } from './schema-parts.ts';

interface RouteDescription {
  readonly summary: string;
  /** Name of the response schema; undefined if the response has no schema. */
  readonly answer?: string;
  readonly type?: string;
  /** Content type of the request body. */
  readonly body?: string;
}

const ROUTE_DESCRIPTIONS: Readonly<Record<ApiRouteName, RouteDescription>> = {
  history: { summary: 'Rates of each upstream over the last hour', answer: 'History' },
  status: { summary: 'Status of upstreams, requests and clients', answer: 'Status' },
  clients: { summary: 'Clients, most restricted first', answer: 'ClientsPage' },
  requests: { summary: 'Ended requests, newest first', answer: 'RequestsPage' },
  timeline: { summary: 'Rate cuts, blocks, reloads and operator actions, newest first', answer: 'TimelinePage' },
  events: {
    summary:
      'Server-sent events: status (StatusFrame, every second), requests (RequestsFrame), timeline (TimelineEvent, as it happens)',
    type: 'text/event-stream',
  },
  config: { summary: 'The effective configuration, secrets masked', answer: 'EffectiveConfig' },
  openapi: { summary: 'This document' },
  explain: {
    summary:
      'Why a request ended as it did, by the Tidegate-Request-Id of its response; as text for Accept: text/plain',
    answer: 'Explanation',
  },
  keys: { summary: 'Writes with idempotency keys that are in progress or remembered', answer: 'KeysPage' },
  key: { summary: 'One of them, by its id or at least eight first digits of it', answer: 'KeyRow' },
  forget: {
    summary: 'Forget a write, so that a request with its key counts as new; not while it is in progress',
    answer: 'ForgottenKey',
  },
  deliveries: { summary: 'Stored deliveries, in the order of acceptance', answer: 'DeliveriesPage' },
  delivery: { summary: 'One of them; its request only with the token', answer: 'DeliveryDetails' },
  retry: {
    summary: 'Send a dead, canceled, unknown or waiting delivery now, with a new schedule',
    answer: 'ChangedDelivery',
  },
  cancel: { summary: 'End a delivery that waits', answer: 'ChangedDelivery' },
  pin: { summary: 'Pin the rate of an upstream', answer: 'SteeredUpstream' },
  unpin: { summary: 'Return to the learned rate', answer: 'SteeredUpstream' },
  block: { summary: 'Send no requests to an upstream', answer: 'SteeredUpstream' },
  unblock: {
    summary: 'Send requests again; if the upstream itself rejects everything, probe at once',
    answer: 'SteeredUpstream',
  },
  reset: { summary: 'Clear the hold, the reserved slot and the reduced allowance of a client', answer: 'ResetClient' },
  clientQuotas: {
    summary: 'What a client has used of its own quotas, by its key or the name that it has proven',
    answer: 'ClientQuotas',
  },
  resetQuotas: { summary: 'Count the requests of a client from 0 on', answer: 'ResetClientQuotas' },
  validate: { summary: 'Validate a configuration', answer: 'Valid', body: 'application/yaml' },
  drain: { summary: 'Drain and exit, as on SIGTERM', answer: 'Draining' },
};

/** The OpenAPI 3.1 document of the admin API, generated from its schemas. */
export function openApiDocument(): Readonly<Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of API_ROUTES) (paths[route.path] ??= {})[route.method.toLowerCase()] = describeRoute(route);
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

function describeRoute({ method, path, name }: (typeof API_ROUTES)[number]): Readonly<Record<string, unknown>> {
  const { summary, answer, body, type = 'application/json' } = ROUTE_DESCRIPTIONS[name];
  const schema = answer === undefined ? {} : schemaRef(answer);
  return {
    operationId: name,
    summary,
    parameters: [...pathParameters(path), ...queryParameters(QUERY_SCHEMAS[name])],
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { [body]: { schema: { type: 'string' } } } } }),
    ...(method === 'GET' ? {} : { security: [{ token: [] }] }),
    responses: {
      200: { description: 'Success', content: { [type]: { schema } } },
      default: {
        description: 'A problem (RFC 9457)',
        content: { 'application/problem+json': { schema: schemaRef('Problem') } },
      },
    },
  };
}

function schemaRef(id: string): Readonly<Record<string, string>> {
  return { $ref: `#/components/schemas/${id}` };
}

function namedSchemas(): Readonly<Record<string, unknown>> {
  const { schemas } = z.toJSONSchema(ApiSchemas, { uri: (id) => `#/components/schemas/${id}` });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, omitSchemaIds(schema)]));
}

/** Inside the document, schemas need no `$schema` and `$id`. */
function omitSchemaIds(schema: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key !== '$schema' && key !== '$id'));
}

function pathParameters(path: string): readonly unknown[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => {
    return { name, in: 'path', required: true, schema: { type: 'string' } };
  });
}

function queryParameters(query: z.ZodObject): readonly unknown[] {
  return Object.entries(query.shape).map(([name, type]) => {
    const { description, ...schema } = omitSchemaIds(z.toJSONSchema(type, { io: 'input' }));
    const required = !z.safeParse(type, undefined).success;
    return { name, in: 'query', required, schema, ...(description === undefined ? {} : { description }) };
  });
}
