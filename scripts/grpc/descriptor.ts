import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import protobuf from 'protobufjs';

const PROTOS = join(import.meta.dirname, 'protos');
const SERVICES = ['envoy.service.auth.v3.Authorization', 'envoy.service.ratelimit.v3.RateLimitService'];
/** Files of Google's own types, which protobufjs contains. */
const COMMON = ['any', 'duration', 'struct', 'timestamp', 'wrappers'];
/** Options that change the bytes of a message. The others describe validation and versions. */
const WIRE_OPTIONS: ReadonlySet<string> = new Set(['packed', 'proto3_optional']);

/** Returns the two services and the messages that they use, as the JSON of protobufjs. */
export function makeDescriptor(): string {
  const root = new protobuf.Root();
  for (const name of COMMON) root.addJSON(protobuf.common.get(`google/protobuf/${name}.proto`)?.nested ?? {});
  // Not resolved as a whole: files that are not here define annotations, and messages that the services do not use.
  for (const file of globSync('**/*.proto', { cwd: PROTOS }).toSorted()) {
    protobuf.parse(readFileSync(join(PROTOS, file), 'utf8'), root);
  }
  const kept = new Set<protobuf.ReflectionObject>();
  for (const name of SERVICES) keepService(root.lookupService(name), kept);
  return `${JSON.stringify(prune(root, kept))}\n`;
}

function keepService(service: protobuf.Service, kept: Set<protobuf.ReflectionObject>): void {
  kept.add(service);
  for (const { requestType, responseType } of service.methodsArray) {
    for (const name of [requestType, responseType]) keepType(service.lookupType(name), kept);
  }
}

function keepType(type: protobuf.ReflectionObject, kept: Set<protobuf.ReflectionObject>): void {
  if (kept.has(type)) return;
  kept.add(type);
  if (!(type instanceof protobuf.Type)) return;
  for (const field of type.fieldsArray) {
    field.resolve();
    if (field.resolvedType !== null) keepType(field.resolvedType, kept);
  }
}

/** The parts of a namespace that are kept; undefined if there are none. */
function prune(object: protobuf.ReflectionObject, kept: ReadonlySet<protobuf.ReflectionObject>): object | undefined {
  const nested =
    object instanceof protobuf.Namespace || object instanceof protobuf.Type
      ? object.nestedArray.flatMap((each) => {
          const part = prune(each, kept);
          return part === undefined ? [] : [[each.name, part] as const];
        })
      : [];
  if (!kept.has(object) && nested.length === 0) return undefined;
  const own = kept.has(object) ? withoutAnnotations(object.toJSON()) : {};
  return nested.length === 0 ? { ...own, nested: undefined } : { ...own, nested: Object.fromEntries(nested) };
}

function withoutAnnotations(json: unknown): object {
  const text = JSON.stringify(json, (key, value: unknown) => {
    if (key === 'valuesOptions' || key === 'comment' || key === 'edition') return undefined;
    if (key !== 'options' || !(value instanceof Object)) return value;
    const wire = Object.entries(value).filter(([name]) => WIRE_OPTIONS.has(name));
    return wire.length === 0 ? undefined : Object.fromEntries(wire);
  });
  const copy: unknown = JSON.parse(text);
  return copy instanceof Object ? copy : {};
}
