import { trimSpace } from '../../core/http-semantics/list-field.ts';

/** JSON types (RFC 8259, RFC 6839), older names, and those of AWS' JSON protocols, whose names do not follow the rule. */
const JSON_TYPE = /^(?:text\/(?:x-)?json|application\/(?:x-amz-json-1\.\d|x-json|(?:[\w.!#$&^+-]+\+)?json))$/i;

/** Whether a Content-Type is JSON, whatever its parameters. */
export function isJsonType(contentType: string): boolean {
  return JSON_TYPE.test(trimSpace(contentType.split(/[;,]/, 1)[0] ?? ''));
}

/** Whether it is JSON in UTF-8 without other parameters, which every parser reads alike. */
export function isPlainJsonType(contentType: string): boolean {
  return isJsonType(contentType) && /^[^;,]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i.test(contentType);
}
