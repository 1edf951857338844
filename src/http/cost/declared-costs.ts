import { RequestCosts } from '../../core/cost/request-costs.ts';
import type { RequestBody } from '../request/request-body.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import { lookupInRequest, parseCost, sumFields } from './read-cost-fields.ts';

/** What a request costs by its method and its headers; undefined: one unit at each limit. */
export function makeRequestCosts({
  request,
  route,
}: Pick<RoutedRequest, 'request' | 'route'>): RequestCosts | undefined {
  const { costs } = route;
  if (costs === undefined) return undefined;
  return new RequestCosts(route.name, costs.rules, (rule) => {
    const cost = costs.costs.find((each) => each.rule === rule);
    const named =
      cost?.request?.kind === 'header' ? parseCost(headerOf(request.headers[cost.request.name])) : undefined;
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
  if (route.costs === undefined || bytes === undefined || declared === undefined) return;
  for (const { rule, request: source } of route.costs.costs) {
    if (source?.kind !== 'json') continue;
    declared.declare(rule.limit, sumFields(source.fields, lookupInRequest(bytes)));
  }
}

/** A repeated header is joined by commas, or a list: it names no cost. */
function headerOf(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
