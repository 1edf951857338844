import { suggest } from '../../config/values/suggest.ts';

export type ApiRouteName = (typeof API_ROUTES)[number]['name'];

/** The routes of the API, for the server and for its OpenAPI document. `{…}` is a path parameter. */
export const API_ROUTES = [
  { method: 'GET', path: '/api/status', name: 'status' },
  { method: 'GET', path: '/api/clients', name: 'clients' },
  { method: 'GET', path: '/api/requests', name: 'requests' },
  { method: 'GET', path: '/api/timeline', name: 'timeline' },
  { method: 'GET', path: '/api/history', name: 'history' },
  { method: 'GET', path: '/api/events', name: 'events' },
  { method: 'GET', path: '/api/config', name: 'config' },
  { method: 'GET', path: '/api/openapi.json', name: 'openapi' },
  { method: 'GET', path: '/explain/{id}', name: 'explain' },
  { method: 'GET', path: '/api/keys', name: 'keys' },
  { method: 'GET', path: '/api/keys/{id}', name: 'key' },
  { method: 'DELETE', path: '/api/keys/{id}', name: 'forget' },
  { method: 'GET', path: '/api/deliveries', name: 'deliveries' },
  { method: 'GET', path: '/api/deliveries/{id}', name: 'delivery' },
  { method: 'POST', path: '/api/deliveries/{id}/retry', name: 'retry' },
  { method: 'POST', path: '/api/deliveries/{id}/cancel', name: 'cancel' },
  { method: 'POST', path: '/api/upstreams/{name}/pin', name: 'pin' },
  { method: 'POST', path: '/api/upstreams/{name}/unpin', name: 'unpin' },
  { method: 'POST', path: '/api/upstreams/{name}/block', name: 'block' },
  { method: 'POST', path: '/api/upstreams/{name}/unblock', name: 'unblock' },
  { method: 'POST', path: '/api/clients/{key}/reset', name: 'reset' },
  { method: 'GET', path: '/api/clients/{key}/quotas', name: 'clientQuotas' },
  { method: 'POST', path: '/api/clients/{key}/quotas/reset', name: 'resetQuotas' },
  { method: 'POST', path: '/api/config/validate', name: 'validate' },
  { method: 'POST', path: '/drain', name: 'drain' },
] as const satisfies readonly ApiRoute[];

interface ApiRoute {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly name: string;
}

export type RouteMatchResult =
  | { readonly kind: 'route'; readonly name: ApiRouteName; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: 'method'; readonly allow: string }
  /** `nearest`: a similar path. */
  | { readonly kind: 'unknown'; readonly nearest: string | undefined };

/** @param path as sent, without the query */
export function matchApiRoute(method: string, path: string): RouteMatchResult {
  const wanted = method === 'HEAD' ? 'GET' : method;
  const allowed: string[] = [];
  for (const route of API_ROUTES) {
    const params = matchPath(route.path, path);
    if (params === undefined) continue;
    if (route.method === wanted && !(method === 'HEAD' && route.name === 'events')) {
      return { kind: 'route', name: route.name, params };
    }
    allowed.push(route.name === 'events' ? 'GET' : (ALLOW_HEADERS[route.method] ?? route.method));
  }
  if (allowed.length > 0) return { kind: 'method', allow: allowed.join(', ') };
  const known = API_ROUTES.map((route) => route.path);
  return { kind: 'unknown', nearest: suggest(path, known) };
}

const ALLOW_HEADERS: Readonly<Record<string, string>> = { GET: 'GET, HEAD' };

function matchPath(template: string, path: string): Readonly<Record<string, string>> | undefined {
  const wanted = template.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [i, part] of wanted.entries()) {
    const word = given[i] ?? '';
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    if (name === undefined) {
      if (part !== word) return undefined;
      continue;
    }
    const decoded = decodeSegment(word);
    if (decoded === undefined || decoded === '') return undefined;
    params[name] = decoded;
  }
  return params;
}

function decodeSegment(word: string): string | undefined {
  try {
    return decodeURIComponent(word);
  } catch {
    return undefined;
  }
}
