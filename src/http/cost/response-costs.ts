import type { Ticket } from '../../core/admission/ticket.ts';
import { isJsonType } from '../headers/media-type.ts';
import { firstHeaderValue } from '../headers/raw-headers.ts';
import { addressGroupOf } from '../request/client-identity.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import type { ResponseHead } from '../response/response-head.ts';
import { CostTap, type UnreadCostReason } from './cost-tap.ts';
import { codingOf } from './decode-body.ts';
import { type FieldLookup, parseCost, readBucket, sumFields } from './read-cost-fields.ts';
import type { RouteCost } from './route-costs.ts';

type CostContext = Pick<ExchangeContext, 'gate' | 'gateTimer' | 'clock' | 'listen' | 'costMemory'>;

/**
 * Settles the costs that the head of a forwarded response names, and returns what reads those in its body; undefined if nothing in it
 * is to be read. A cost that is not read changes nothing: the charge stands.
 */
export function readResponseCosts(
  context: CostContext,
  { route, client }: RoutedRequest,
  ticket: Ticket,
  { status, headers }: Pick<ResponseHead, 'status' | 'headers'>,
): CostTap | undefined {
  const open = route.costs?.costs.filter(({ rule }) => ticket.costs?.find(rule.limit)?.isOpen === true) ?? [];
  if (open.length === 0) return undefined;
  const inHead = open.filter(({ response }) => response?.kind === 'header');
  const inBody = open.filter(({ response }) => response?.kind === 'json');
  const onUnread = (reason: UnreadCostReason): void =>
    context.listen({ type: 'cost-unread', upstream: route.target.name, route: route.name, reason });
  const settle = (costs: readonly RouteCost[], find: (cost: RouteCost) => number | undefined): void => {
    const { gate, gateTimer, clock } = context;
    const named = new Map(costs.flatMap((cost) => [[cost.rule.limit, find(cost)] as const]));
    if ([...named.values()].includes(undefined)) onUnread('not_found');
    gate.costs.settle(ticket, named, clock.now());
    gateTimer.rearm();
  };
  if (inHead.length > 0) {
    settle(inHead, ({ response }) =>
      response?.kind === 'header' ? parseCost(firstHeaderValue(headers, response.name)) : undefined,
    );
  }
  if (inBody.length === 0 || status >= 300) return undefined;
  if (!isJsonType(firstHeaderValue(headers, 'content-type') ?? '')) {
    onUnread('not_found');
    return undefined;
  }
  return new CostTap({
    memory: context.costMemory,
    owner: addressGroupOf(client),
    coding: codingOf(firstHeaderValue(headers, 'content-encoding') ?? ''),
    onRead: (lookup) => {
      applyBuckets(context, inBody, ticket, lookup);
      settle(inBody, ({ response }) => (response?.kind === 'json' ? sumFields(response.fields, lookup) : undefined));
    },
    onUnread,
  });
}

function applyBuckets(
  { gate, clock }: CostContext,
  costs: readonly RouteCost[],
  ticket: Ticket,
  lookup: FieldLookup,
): void {
  for (const { rule, bucket } of costs) {
    const quota = bucket === undefined ? undefined : readBucket(bucket, lookup);
    if (quota !== undefined) gate.costs.applyBucket(ticket, rule.limit, quota, clock.now());
  }
}
