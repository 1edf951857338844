/** The place that knows an idempotency key: an endpoint, and with accounts the account that the write was sent with. */

const SEPARATOR = '@';

/** The text that is recorded with a key. The name of an account has no `@`. @param label of the endpoint */
export function formatKeyPlace(label: string, account: string | undefined): string {
  return account === undefined ? label : `${account}${SEPARATOR}${label}`;
}

/** The label of the endpoint. @param place as recorded */
export function endpointOfPlace(place: string): string {
  return place.slice(place.indexOf(SEPARATOR) + 1);
}

/** The name of the account; undefined if none is recorded. @param place as recorded */
export function accountOfPlace(place: string): string | undefined {
  const end = place.indexOf(SEPARATOR);
  return end < 0 ? undefined : place.slice(0, end);
}
