import type { Delivery } from '../../../core/delivery/delivery.ts';
import type { Millis } from '../../../core/scalars.ts';
import { decodeFields } from './delivery-fields.ts';

/** What the script that claims deliveries returns. */
export interface TakenReply {
  readonly deliveries: readonly {
    readonly delivery: Delivery;
    readonly claim: string;
    /** Undefined if it is missing. */
    readonly sealed: Buffer | undefined;
  }[];
  readonly nextDueAt: Millis | undefined;
}

/** Undefined if it is something else. */
export function readTaken(reply: unknown): TakenReply | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [taken, next] = reply as readonly unknown[];
  if (!Array.isArray(taken)) return undefined;
  const deliveries = (taken as readonly (readonly unknown[])[]).flatMap(([id, claim, sealed, fields]) => {
    const delivery = decodeFields(String(id), fields);
    if (delivery === undefined) return [];
    return [{ delivery, claim: String(claim), sealed: sealed instanceof Buffer ? sealed : undefined }];
  });
  const nextDueAt = String(next);
  return { deliveries, nextDueAt: nextDueAt === '' ? undefined : Number(nextDueAt) };
}
