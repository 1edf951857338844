/** Schemas of values that several responses contain. */
import { z } from 'zod';

/** Schemas with a name in the OpenAPI document. */
export const ApiSchemas = z.registry<{ readonly id: string }>();

export const NotesSchema = z.array(z.string()).describe('Notes for the operator, in sentences.');
export const TimeSchema = z.iso.datetime({ precision: 3 }).describe('ISO 8601, UTC, with milliseconds.');
export const RateSchema = z.number().min(0);
export const SecondsSchema = z.number().min(0);
export const ShareSchema = z.number().min(0).max(1);
export const CountSchema = z.int().min(0);
export const ClientKeySchema = z.string().describe('Hashed identity of the client.');
export const ClientNameSchema = z
  .string()
  .nullable()
  .describe('Name of the client in the configuration (clients.names); null if it has none.');
export const ClientShareSchema = RateSchema.nullable().describe(
  'Its share of the rate; null if there is no limit or if classes have weights.',
);
