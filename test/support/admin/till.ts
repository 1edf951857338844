/**
 * Payments whose keys an operator looks up: keys that begin with `lost` get no response, and those that begin with `held` get one later.
 *
 *     const { held, start } = await startTill();
 *     const { pay, list } = await start('state: {store: sqlite, file: state.db}');
 *     await pay('lost-1');
 *     (await list('?state=unresolved')).keys;
 */
import type { ServerResponse } from 'node:http';
import type { KeysPage } from '../../../src/admin/api/key-schemas.ts';
import { send } from '../clients/send.ts';
import { eventually, startTidegate } from '../proxy/tidegate.ts';
import { startHttpUpstream } from '../upstreams/http-upstream.ts';
import { openAdminApi, TOKEN } from './admin-api.ts';

export async function startTill() {
  const held: ServerResponse[] = [];
  const upstream = await startHttpUpstream((_nth, response, { body }) => {
    if (body.toString().startsWith('held')) held.push(response);
    else if (body.toString().startsWith('lost')) response.destroy();
    else response.end('paid');
  });
  /** Starts a proxy with two upstreams, `till` and `bank`. */
  const start = async (state = '') => {
    const gate = await startTidegate(`
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
${state}
upstreams:
  till: {url: "${upstream.url}", timeout: 60s, perTryTimeout: 60s, retry: {attempts: 1}, idempotency: {ttl: 1h, concurrent: refuse}}
  bank: {url: "${upstream.url}", retry: {attempts: 1}}
routes: [{path: /, upstream: till}, {path: /bank, upstream: bank}]
`);
    const api = await openAdminApi(gate.adminUrl ?? '');
    const pay = (key: string, path = '/pay', more: readonly string[] = []) =>
      send(gate.url, path, { method: 'POST', body: key, headers: ['Idempotency-Key', key, ...more] });
    /** Asks again where a busy machine let Redis respond too late. */
    const list = async (query = '') => {
      const found = await eventually(
        () => api.get(`/api/keys${query}`),
        ({ status }) => status !== 503,
      );
      return found.json() as unknown as KeysPage;
    };
    /** As a client that the proxy refuses: the response says whether the write may have happened. */
    const outcome = async (key: string) => (await pay(key, '/pay', ['Expect', 'x'])).header('tidegate-outcome');
    return { gate, api, pay, list, outcome };
  };
  return { upstream, held, start };
}
