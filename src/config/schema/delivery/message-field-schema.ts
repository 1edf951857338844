import { z } from 'zod';
import { HeaderName, JsonFieldPath } from '../name-schemas.ts';

/** One part of a request. */
export const MessageFieldSchema = z
  .strictObject({
    header: HeaderName.optional().describe('The value of this request header.'),
    json: JsonFieldPath.optional().describe('The text in this field of a JSON body: id, or a.b within an object.'),
  })
  .refine(({ header, json }) => (header === undefined) !== (json === undefined), 'expected either header or json');
