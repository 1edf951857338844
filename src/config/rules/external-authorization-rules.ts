import type { Checked, Written } from './rule-finding.ts';
import { mistake, warning } from './rule-finding.ts';
import type { Draft } from '../load/partial-config.ts';

/** Whether there is somebody who may ask, and something to be asked. */
export function* checkCheck({ check, trustedProxies, routes = [] }: Draft, written: Written): Generator<Checked> {
  if (!written(['check'])) {
    for (const [i, route] of routes.entries()) {
      if (route.check === 'only') yield mistake(['routes', i, 'check'], 'needs the section check: nobody could ask');
      else if (written(['routes', i, 'check'])) {
        yield warning(['routes', i, 'check'], 'has no effect: there is no section check');
      }
    }
    return;
  }
  if (trustedProxies?.length === 0) {
    yield mistake(['check'], 'needs clients.trustedProxies: the addresses that may ask on behalf of clients');
  }
  if (check === undefined) return;
  const catchesAll = routes.some(({ takes, check: answers }) => {
    const isAny =
      takes === undefined || (takes.path === '/' && takes.host === undefined && takes.methods === undefined);
    return isAny && answers !== 'never';
  });
  if (routes.length > 0 && !catchesAll && !written(['check', 'unrouted'])) yield warning(['check'], PASSES);
  if (check.path === '/') yield mistake(['check', 'path'], EVERYTHING, '/check');
  if (check.reportPath === '/') yield mistake(['check', 'reportPath'], EVERYTHING, '/report');
  if (check.reportPath === check.path || check.reportPath.startsWith(`${check.path}/`)) {
    yield mistake(['check', 'reportPath'], 'is below check.path, where it would never be found', '/report');
  }
}

const PASSES = 'what no route leads to passes unasked: have a route of all, or write check.unrouted: pass or refuse';

const EVERYTHING = 'would take every request';
