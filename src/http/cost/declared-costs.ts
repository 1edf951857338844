import { RequestCosts } from '../../core/cost/request-costs.ts';
import { readJsonScalar } from '../../core/http-semantics/json-field.ts';
import type { RequestBody } from '../request/request-body.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import { parseCost } from './read-cost-fields.ts';

/** A longer body is not parsed. */
const MAX_PARSED_BYTES = 64 * 1024;

/**
 * What a request costs by its method and its headers; undefined: one unit at each limit. One whose body is to name a cost has the highest
 * until that is read: a body that is hidden from Tidegate is not cheaper.
 */
export function makeRequestCosts({
  request,
  route,
}: Pick<RoutedRequest, 'request' | 'route'>): RequestCosts | undefined {
  const { costs } = route;
  if (costs === undefined) return undefined;
  return new RequestCosts(route.name, costs.rules, (rule) => {
    const cost = costs.costs.find((each) => each.rule === rule);
    const source = cost?.request;
    if (source?.kind === 'json' && request.hasBody) return rule.max;
    const named = source?.kind === 'header' ? parseCost(headerOf(request.headers[source.name])) : undefined;
    return named ?? cost?.byMethod.get(request.verb);
  });
}

/** Adds what the body of the request names, if it is kept. To be called before the request asks for admission. */
export function declareBodyCosts(
  { route }: Pick<RoutedRequest, 'route'>,
  body: Pick<RequestBody, 'whole'> | undefined,
  declared: RequestCosts | undefined,
): void {
  const bytes = body?.whole;
  if (route.costs === undefined || bytes === undefined || bytes.length > MAX_PARSED_BYTES) return;
  for (const { rule, request: source } of route.costs.costs) {
    if (source?.kind !== 'json') continue;
    const value = readJsonScalar(bytes, source.field);
    declared?.declare(rule.limit, typeof value === 'number' ? value : undefined);
  }
}

/** A repeated header is joined by commas, or a list: it names no cost. */
function headerOf(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
