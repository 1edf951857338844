// Compares the field names in host.lua with the types of the sources: in Lua, a field with a wrong name is nil without an error.

/** Tables that host.lua makes: each has all fields of its type, and no others. */
const WRITTEN = { request: 'LeaseRequest', known: 'LastKnownLimit', settings: 'RateSettings', store: 'AccountStore' };
/** Tables that host.lua reads, and the fields that it leaves out. */
const READ = {
  response: { type: 'LeaseResponse' },
  terms: { type: 'ReplicaTerms' },
  block: { type: 'BlockStatus' },
  owner: { type: 'QuotaOwner', omitted: ['address'] },
  decrease: { type: 'AppliedDecrease', omitted: ['sentAt'] },
};

/** @throws where a name in host.lua and its type differ */
export function checkHost(ts, { checker, typeNamed }, host) {
  const compare = (local, typeName, found, omitted = []) => {
    const type = typeNamed(typeName);
    if (type === undefined) throw new Error(`no type is called ${typeName}`);
    const expected = checker.getPropertiesOfType(type).map(({ name }) => name);
    const stale = omitted.filter((name) => !expected.includes(name));
    const unknown = found.filter((name) => !expected.includes(name));
    const missing = expected.filter((name) => !found.includes(name) && !omitted.includes(name));
    const differences = [...unknown.map((name) => `no ${name}`), ...missing.map((name) => `also ${name}`)];
    if (stale.length > 0) differences.push(`omits ${stale.join(', ')}`);
    if (differences.length > 0) throw new Error(`${local} of host.lua: ${typeName} has ${differences.join(', ')}`);
  };
  for (const [local, typeName] of Object.entries(WRITTEN)) compare(local, typeName, writtenTo(host, local));
  for (const [local, { type, omitted }] of Object.entries(READ)) compare(local, type, readFrom(host, local), omitted);
}

/** The keys of `local = {…}`, with one key a line, and the methods in `function local.name`. */
function writtenTo(host, local) {
  const methods = [...host.matchAll(new RegExp(`^function ${local}\\.(\\w+)`, 'gm'))].map(([, name]) => name);
  const [, indent, body = ''] = new RegExp(`^( *)(?:local )?${local} = \\{\\n(.*?)^\\1\\}`, 'ms').exec(host) ?? [];
  const keys = [...body.matchAll(new RegExp(`^${indent ?? ''}  (\\w+) =`, 'gm'))].map(([, name]) => name);
  return [...methods, ...keys];
}

/** The fields in `local.name` and `local['name']`. */
function readFrom(host, local) {
  return [...host.matchAll(new RegExp(`\\b${local}(?:\\.(\\w+)|\\['(\\w+)'\\])`, 'g'))].map(([, a, b]) => a ?? b);
}
