/** A client of the admin API that checks each response against the schema in its OpenAPI document. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'vitest';
import type { Received } from '../clients/send.ts';
import { send } from '../clients/send.ts';

export const TOKEN = 'correct-horse-battery';

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

interface Operation {
  readonly operationId: string;
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { readonly schema: object }>> }>
  >;
}

export interface AdminApi {
  readonly document: Document;
  get(target: string): Promise<Received>;
  /** Sends the token. */
  post(target: string, body?: string): Promise<Received>;
  /** Sends the token. */
  delete(target: string): Promise<Received>;
  /** Fails unless `value` matches the named schema. */
  fits(schema: string, value: unknown): void;
}

export async function openAdminApi(adminUrl: string): Promise<AdminApi> {
  const document = (await send(adminUrl, '/api/openapi.json')).json() as unknown as Document;
  const ajv = new Ajv2020({ strict: false, formats: { 'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/ } });
  ajv.addSchema({ $id: 'api', components: document.components });
  const fits = (schema: string, value: unknown): void => {
    const validate = ajv.getSchema(`api#/components/schemas/${schema}`);
    if (validate === undefined) throw new Error(`no schema is named ${schema}`);
    expect(validate(value), JSON.stringify(validate.errors)).toBe(true);
  };
  const check = (method: string, target: string, received: Received): Received => {
    const path = target.split('?')[0] ?? '';
    if (received.status !== 200) {
      expect(received.header('content-type')).toMatch(/^application\/problem\+json/);
      fits('Problem', received.json());
      return received;
    }
    const [, operation] =
      Object.entries(document.paths).find(([template]) => {
        return new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path);
      }) ?? [];
    const schema = operation?.[method]?.responses['200']?.content['application/json']?.schema;
    const name = /\w+$/.exec(String(Reflect.get(schema ?? {}, '$ref')))?.[0] ?? '';
    if (name !== 'undefined') fits(name, received.json());
    return received;
  };
  return {
    document,
    fits,
    get: async (target) => check('get', target, await send(adminUrl, target)),
    delete: async (target) => {
      const headers = ['Authorization', `Bearer ${TOKEN}`];
      return check('delete', target, await send(adminUrl, target, { method: 'DELETE', headers }));
    },
    post: async (target, body) => {
      const type = body === undefined ? [] : ['Content-Type', 'application/yaml'];
      const headers = ['Authorization', `Bearer ${TOKEN}`, ...type];
      return check(
        'post',
        target,
        await send(adminUrl, target, { method: 'POST', headers, ...(body === undefined ? {} : { body }) }),
      );
    },
  };
}
