/**
 * A shop that receives notifications, and an operator who looks at them: bodies that begin with `dead` get a 400 for ever, those that
 * begin with `held` get no response before `release`, and others get a 200.
 *
 *     const { gate, api, notify, list, until } = await startShop();
 *     const id = await notify('dead-1');
 *     await until(id, 'dead');
 */
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DeliveriesPage, DeliveryDetails } from '../../../src/admin/api/delivery-schemas.ts';
import { openAdminApi, TOKEN } from '../admin/admin-api.ts';
import { atEnd } from '../at-end.ts';
import { send } from '../clients/send.ts';
import { eventually, startTidegate } from '../proxy/tidegate.ts';
import { startHttpUpstream } from '../upstreams/http-upstream.ts';

/** @param folder of the database */
export function shopConfig(url: string, folder: string): string {
  return `
admin: {listen: "127.0.0.1:0", token: ${TOKEN}}
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: sqlite, file: ${join(folder, 'state.db')}}
upstreams: {shop: {url: "${url}"}}
routes:
  - {path: /hooks, upstream: shop, deliver: {schedule: {delays: [1s]}, eventId: {header: x-event}}}
  - {path: /slow, upstream: shop, deliver: {schedule: {delays: [1h]}}}
  - {path: /, upstream: shop}
`;
}

export async function startShopUpstream() {
  const held: ServerResponse[] = [];
  let isRepaired = false;
  const upstream = await startHttpUpstream((_nth, response, { body }) => {
    const text = body.toString();
    if (text.startsWith('held')) held.push(response);
    else response.writeHead(text.startsWith('dead') && !isRepaired ? 400 : 200).end();
  });
  const repair = (): void => {
    isRepaired = true;
  };
  return { upstream, held, repair };
}

export function makeStateFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-shop-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export async function startShop() {
  const shop = await startShopUpstream();
  const gate = await startTidegate(shopConfig(shop.upstream.url, makeStateFolder()));
  const api = await openAdminApi(gate.adminUrl ?? '');
  /** Returns the id of the delivery. */
  const notify = async (body: string | Buffer, path = '/hooks', headers: readonly string[] = []) => {
    const accepted = await send(gate.url, path, { method: 'POST', body, headers });
    return accepted.header('tidegate-delivery-id') ?? '';
  };
  const list = async (query = '') => (await api.get(`/api/deliveries${query}`)).json() as unknown as DeliveriesPage;
  const show = async (id: string) => (await api.get(`/api/deliveries/${id}`)).json() as unknown as DeliveryDetails;
  const until = (id: string, state: string) =>
    eventually(
      () => show(id),
      (row) => row.state === state,
    );
  return { ...shop, gate, api, notify, list, show, until };
}
