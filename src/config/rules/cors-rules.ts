import type { Checked } from './rule-finding.ts';
import { mistake, warning } from './rule-finding.ts';
import type { Draft } from '../load/partial-config.ts';

/** What a browser would not take for what is meant. */
export function* checkCors({ routes = [] }: Draft): Generator<Checked> {
  for (const [i, { cors, takes }] of routes.entries()) {
    if (cors === undefined || cors === 'pass-through') continue;
    const path = ['routes', i, 'cors'];
    const { origins, methods = [], headers = [], exposeHeaders, credentials } = cors;
    const any = origins.indexOf('*');
    if (any >= 0 && credentials) {
      yield mistake([...path, 'origins', any], 'with credentials, browsers do not take *: name the origins');
    } else if (any >= 0 && origins.length > 1) {
      yield mistake([...path, 'origins', any], '* stands for all origins: leave out the others, or this');
    }
    for (const [key, names] of Object.entries({ methods, headers, exposeHeaders })) {
      const at = names.indexOf('*');
      if (at < 0 || !credentials) continue;
      const what = key === 'exposeHeaders' ? 'list them' : 'list them, or leave the key out for all that are asked for';
      yield mistake([...path, key, at], `with credentials, browsers take * for a name: ${what}`);
    }
    for (const [j, method] of methods.entries()) {
      if (method === '*' || takes?.methods === undefined || takes.methods.includes(method)) continue;
      yield warning([...path, 'methods', j], 'has no effect: the route does not take it');
    }
  }
}
