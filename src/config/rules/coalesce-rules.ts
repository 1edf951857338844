import type { PartialConfig } from '../load/partial-config.ts';
import type { RuleFinding } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';

/** Routes that coalesce have reads, and each of their clients waits for the response of the upstream. */
export function* checkCoalescing({ routes = [], upstreams, mode }: PartialConfig): Generator<RuleFinding> {
  for (const [i, { match, coalesce, poll, deliver, upstream }] of routes.entries()) {
    if (coalesce === undefined || coalesce === false) continue;
    const path = ['routes', i, 'coalesce'];
    if (poll !== undefined) yield mistakeAt(path, 'cannot be combined with poll: each client waits for its own result');
    if (deliver !== undefined) {
      yield mistakeAt(path, 'cannot be combined with deliver: each request is stored, and sent by itself');
    }
    if (match?.methods?.some((method) => method === 'GET' || method === 'HEAD') === false) {
      yield warningAt(path, 'has no effect: only GET and HEAD are coalesced, and this route matches neither', 'key');
    }
    const ownMode = upstream === undefined ? undefined : upstreams.get(upstream)?.mode;
    if ((ownMode ?? mode) === 'observe') {
      yield warningAt(path, 'has no effect: mode: observe sends every request', 'key');
    }
  }
}
