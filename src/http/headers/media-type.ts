/** JSON by its name (RFC 8259, RFC 6839), the older one, and those of AWS' JSON protocols, which are no JSON by theirs. */
const JSON_TYPE = /^(?:text\/(?:x-)?json|application\/(?:x-amz-json-1\.\d|x-json|(?:[\w.!#$&^+-]+\+)?json))$/i;

/** Whether a Content-Type says that the body is JSON, whatever its parameters are. */
export function isJson(contentType: string): boolean {
  return JSON_TYPE.test((contentType.split(/[;,]/, 1)[0] ?? '').trim());
}

/** The same, in UTF-8 and with no other parameter: what every reader takes for the same text. */
export function isPlainJson(contentType: string): boolean {
  return isJson(contentType) && /^[^;,]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i.test(contentType);
}
