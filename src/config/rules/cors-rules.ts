import type { RuleFinding } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';
import type { PartialConfig } from '../load/partial-config.ts';

/** Settings that browsers would not interpret as intended. */
export function* checkCors({ routes = [] }: PartialConfig): Generator<RuleFinding> {
  for (const [i, { cors, match }] of routes.entries()) {
    if (cors === undefined || cors === 'pass-through') continue;
    const path = ['routes', i, 'cors'];
    const { origins, methods = [], headers = [], exposeHeaders, credentials } = cors;
    const wildcardIndex = origins.indexOf('*');
    if (wildcardIndex >= 0 && credentials) {
      yield mistakeAt(
        [...path, 'origins', wildcardIndex],
        'with credentials, browsers do not accept *: name the origins',
      );
    } else if (wildcardIndex >= 0 && origins.length > 1) {
      yield mistakeAt([...path, 'origins', wildcardIndex], '* already allows every origin: remove it or the others');
    }
    for (const [key, names] of Object.entries({ methods, headers, exposeHeaders })) {
      const at = names.indexOf('*');
      if (at < 0 || !credentials) continue;
      const what =
        key === 'exposeHeaders' ? 'list them' : 'list them, or leave out the key to allow all that are requested';
      yield mistakeAt([...path, key, at], `with credentials, browsers read * as a name: ${what}`);
    }
    for (const [j, method] of methods.entries()) {
      if (method === '*' || match?.methods === undefined || match.methods.includes(method)) continue;
      yield warningAt([...path, 'methods', j], 'has no effect: the route does not match this method');
    }
  }
}
