import { readJsonScalar } from '../http-semantics/json-field.ts';

/** Which responses acknowledge a delivery. A provider may want its own word, such as the body `success` of Alipay. */
export interface Acknowledgement {
  readonly statuses: ReadonlySet<number>;
  /** Undefined: whatever the body says. */
  readonly body: BodyCondition | undefined;
}

export type BodyCondition =
  /** The body is this text; white space around it does not count. */
  | { readonly kind: 'text'; readonly equals: string }
  /** A JSON body has this value at the path, of the same type. */
  | { readonly kind: 'json'; readonly path: readonly string[]; readonly equals: string | number | boolean };

/** A longer body acknowledges nothing, where the body counts. */
export const MAX_ACKNOWLEDGEMENT_BYTES = 64 * 1024;

/**
 * How many bytes of the body of a response with this status decide: 0 if the status alone does. One byte more than that shows that a body
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
