import type { Ticket } from '../../core/admission/ticket.ts';
import { isEventStream } from '../headers/forward-headers.ts';
import { isJsonType } from '../headers/media-type.ts';
import { firstHeaderValue } from '../headers/raw-headers.ts';
import { addressGroupOf } from '../request/client-identity.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import type { ResponseHead } from '../response/response-head.ts';
import { type CostTap, EventStreamCostTap, JsonCostTap, type UnreadCostReason } from './cost-tap.ts';
import { codingOf } from './decode-body.ts';
import { type FieldLookup, parseCost, readBucket, sumFields } from './read-cost-fields.ts';
import type { CostFieldPath, RouteCost } from './route-costs.ts';

type CostContext = Pick<ExchangeContext, 'gate' | 'gateTimer' | 'clock' | 'listen' | 'replayMemory'>;

/**
 * Settles the costs that the head of a forwarded response names, and returns what reads those in its body; undefined if nothing in it
 * is to be read.
 */
export function readResponseCosts(
  context: CostContext,
  routed: RoutedRequest,
  ticket: Ticket,
  head: Pick<ResponseHead, 'status' | 'headers'>,
): CostTap | undefined {
  const { costs } = routed.route;
  if (costs === undefined || ticket.costs?.hasOpen !== true) return undefined; // a rejection has cost nothing
  settleByHead(context, routed, costs.costs, ticket, head.headers);
  const inBody = costs.costs.filter(({ response }) => response?.kind === 'json');
  return inBody.length === 0 || head.status >= 300
    ? undefined
    : makeCostTap(context, routed, inBody, ticket, head.headers);
}

function settleByHead(
  context: CostContext,
  { route }: RoutedRequest,
  costs: readonly RouteCost[],
  ticket: Ticket,
  headers: readonly string[],
): void {
  const named = new Map<string, number>();
  const missing: string[] = [];
  for (const { rule, response } of costs) {
    if (response?.kind !== 'header') continue;
    const cost = parseCost(firstHeaderValue(headers, response.name));
    if (cost === undefined) missing.push(rule.limit);
    else named.set(rule.limit, cost);
  }
  if (missing.length > 0) leaveUnread(context, route, ticket, missing, 'not_found');
  if (named.size > 0 && context.gate.costs.settle(ticket, named, context.clock.now())) context.gateTimer.rearm();
}

function makeCostTap(
  context: CostContext,
  { route, client }: RoutedRequest,
  costs: readonly RouteCost[],
  ticket: Ticket,
  headers: readonly string[],
): CostTap | undefined {
  const isStream = isEventStream(headers);
  if (!isStream && !isJsonType(firstHeaderValue(headers, 'content-type') ?? '')) {
    leaveUnread(context, route, ticket, costs.map(nameOf), 'not_found');
    return undefined;
  }
  const options = {
    memory: context.replayMemory,
    owner: addressGroupOf(client),
    coding: codingOf(firstHeaderValue(headers, 'content-encoding') ?? ''),
    onRead: (lookup: FieldLookup) => settleByBody(context, route, costs, ticket, lookup),
    onUnread: (reason: UnreadCostReason) => leaveUnread(context, route, ticket, costs.map(nameOf), reason),
  };
  return isStream ? new EventStreamCostTap(options, costs.flatMap(fieldsOf)) : new JsonCostTap(options);
}

function settleByBody(
  context: CostContext,
  route: RoutedRequest['route'],
  costs: readonly RouteCost[],
  ticket: Ticket,
  lookup: FieldLookup,
): void {
  const { gate, gateTimer, clock } = context;
  const named = new Map<string, number>();
  const now = clock.now();
  for (const { rule, response, bucket } of costs) {
    const cost = response?.kind === 'json' ? sumFields(response.fields, lookup) : undefined;
    if (cost !== undefined) named.set(rule.limit, cost);
    const quota = bucket === undefined ? undefined : readBucket(bucket, lookup);
    if (quota !== undefined) gate.costs.applyBucket(ticket, rule.limit, quota, now);
  }
  gate.costs.settle(ticket, named, now);
  const unread = costs.map(nameOf).filter((limit) => !named.has(limit));
  if (unread.length === costs.length) leaveUnread(context, route, ticket, unread, 'not_found');
  else gate.costs.settleUnread(ticket, unread, now);
  gateTimer.rearm();
}

function nameOf({ rule }: RouteCost): string {
  return rule.limit;
}

function fieldsOf({ response, bucket }: RouteCost): readonly CostFieldPath[] {
  const fields = response?.kind === 'json' ? response.fields : [];
  return bucket === undefined ? fields : [...fields, bucket.available, bucket.limit, bucket.refillRate];
}

/** Settles the costs by an estimate, and counts the response. */
function leaveUnread(
  { gate, gateTimer, clock, listen }: CostContext,
  { name, target }: RoutedRequest['route'],
  ticket: Ticket,
  limits: readonly string[],
  reason: UnreadCostReason,
): void {
  gate.costs.settleUnread(ticket, limits, clock.now());
  gateTimer.rearm();
  listen({ type: 'cost-unread', upstream: target.name, route: name, reason });
}
