import type { CorsConfig } from '../schema/config-schema.ts';
import type { CorsPolicy } from '../../http/headers/cors-headers.ts';
import { EXPOSED_HEADERS } from '../../http/headers/cors-headers.ts';

/** Undefined if CORS is left to the upstream. @param routeMethods the methods of the route; undefined: all */
export function compileCors(
  cors: CorsConfig | undefined,
  routeMethods: readonly string[] | undefined,
): CorsPolicy | undefined {
  if (cors === undefined || cors === 'pass-through') return undefined;
  const { origins, methods = routeMethods, headers, exposeHeaders, credentials, maxAge } = cors;
  return {
    origins: origins.includes('*') ? undefined : new Set(origins.filter((origin) => !origin.includes('*'))),
    wildcards: origins.flatMap((origin) => {
      const [before = '', after] = origin.split('*');
      return origin === '*' || after === undefined ? [] : [[before, after] as const];
    }),
    methods: methods?.join(', '),
    headers: headers?.join(', '),
    exposed: exposeHeaders.includes('*') ? '*' : [...new Set([...EXPOSED_HEADERS, ...exposeHeaders])].join(', '),
    credentials,
    maxAge: Math.floor(maxAge / 1000),
  };
}
