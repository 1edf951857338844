import { readJsonScalar } from '../http-semantics/json-field.ts';

/** Which responses acknowledge a delivery. A protocol may require a certain body, such as `success` of Alipay. */
export interface Acknowledgement {
  readonly statuses: ReadonlySet<number>;
  /** Undefined: any body. */
  readonly body: BodyCondition | undefined;
}

export type BodyCondition =
  /** The body is this text; white space around it does not count. */
  | { readonly kind: 'text'; readonly equals: string }
  /** A JSON body has this value at the path, of the same type. */
  | { readonly kind: 'json'; readonly path: readonly string[]; readonly equals: string | number | boolean };

/** A longer body does not acknowledge, if the body is compared. */
export const MAX_ACKNOWLEDGEMENT_BYTES = 64 * 1024;

/**
 * How many bytes of the body are compared for a response with this status: 0 if the status alone decides. One byte more shows that a body
 * is too long.
 */
export function acknowledgementBytes({ statuses, body }: Acknowledgement, status: number): number {
  return body === undefined || !statuses.has(status) ? 0 : MAX_ACKNOWLEDGEMENT_BYTES;
}

/** @param body of the response, complete and without a content coding; not read where `acknowledgementBytes` is 0 */
export function isAcknowledged(
  { statuses, body: condition }: Acknowledgement,
  status: number,
  body: Uint8Array,
): boolean {
  if (!statuses.has(status)) return false;
  if (condition === undefined) return true;
  if (body.length > MAX_ACKNOWLEDGEMENT_BYTES) return false;
  return condition.kind === 'text'
    ? decode(body).trim() === condition.equals
    : readJsonScalar(body, condition.path) === condition.equals;
}

const UTF8 = new TextDecoder('utf-8');

/** A byte order mark is dropped. What is not UTF-8 yields a replacement character, which equals no text that a file contains. */
function decode(bytes: Uint8Array): string {
  return UTF8.decode(bytes);
}
