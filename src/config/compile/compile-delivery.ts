import type { Acknowledgement } from '../../core/delivery/acknowledgement.ts';
import type { DeliveryPolicy, MessageField } from '../../core/delivery/delivery-policy.ts';
import { standardWebhookKey } from '../../http/webhooks/standard-webhooks-signature.ts';
import type { DeliveryConfig } from '../schema/config-schema.ts';
import { scheduleInEffect } from '../schema/delivery/schedule-in-effect.ts';
import { toList } from '../values/one-or-many.ts';

/** @param deliver of the route; undefined: it forwards requests at once */
export function compileDelivery(deliver: DeliveryConfig | undefined): DeliveryPolicy | undefined {
  if (deliver === undefined) return undefined;
  const { schedule, acknowledgedBy, respond, eventId, orderBy, sign } = deliver;
  const { deduplicateFor, concurrency, maxBody, keepFor } = deliver;
  return {
    schedule: scheduleInEffect(schedule),
    acknowledgement: compileAcknowledgement(acknowledgedBy),
    respond: { status: respond.status, body: respond.body, contentType: respond.contentType },
    eventId: compileField(eventId),
    orderBy: compileField(orderBy),
    deduplicateFor,
    maxBody,
    concurrency,
    signingKeys: sign?.secrets.map(standardWebhookKey),
    keepFor,
  };
}

function compileAcknowledgement({ status, body }: DeliveryConfig['acknowledgedBy']): Acknowledgement {
  const statuses = toList(status).flatMap((each) =>
    each === '2xx' ? Array.from({ length: 100 }, (_, i) => 200 + i) : [each],
  );
  return { statuses: new Set(statuses), body: body === undefined ? undefined : compileBody(body) };
}

function compileBody({ json, equals }: NonNullable<DeliveryConfig['acknowledgedBy']['body']>): Acknowledgement['body'] {
  if (json !== undefined) return { kind: 'json', path: json.split('.'), equals };
  return { kind: 'text', equals: String(equals).trim() };
}

function compileField(field: DeliveryConfig['eventId']): MessageField | undefined {
  if (field?.header !== undefined) return { kind: 'header', name: field.header.toLowerCase() };
  return field?.json === undefined ? undefined : { kind: 'json', path: field.json.split('.') };
}
