/** RFC 9110 §9.2.1: the method has no effect, so an unknown outcome does no harm. */
export function isSafeMethod(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS' || method === 'TRACE' || method === 'QUERY';
}

/** RFC 9110 §9.2.2: sending the request twice has the effect of sending it once. */
export function isIdempotentMethod(method: string): boolean {
  return isSafeMethod(method) || method === 'PUT' || method === 'DELETE';
}
