export interface PackageAdvisory {
  /** GHSA-…, or its address if that has no such id. */
  readonly id: string;
  readonly name: string;
  /** The affected versions. */
  readonly range: string;
  readonly title: string;
}

/** Returns the advisories in the output of `npm audit --json`, or undefined if it is not a report. */
export function findAdvisories(output: string): readonly PackageAdvisory[] | undefined {
  const vulnerabilities = field(parse(output), 'vulnerabilities');
  if (!(vulnerabilities instanceof Object)) return undefined;
  const found = new Map<string, PackageAdvisory>();
  for (const name of Object.keys(vulnerabilities)) {
    const via = field(field(vulnerabilities, name), 'via');
    for (const cause of Array.isArray(via) ? (via as readonly unknown[]) : []) {
      if (!(cause instanceof Object)) continue; // the name of a package that has the advisory
      const [url, name, range, title] = ['url', 'name', 'range', 'title'].map((key) => String(field(cause, key)));
      const id = /GHSA(?:-\w{4}){3}/.exec(url ?? '')?.[0] ?? String(url);
      found.set(id, { id, name: String(name), range: String(range), title: String(title) });
    }
  }
  return [...found.values()];
}

/** Returns the names of the advisories of an OpenVEX document by each of their ids: the name itself, and the aliases. */
export function statedAdvisories(vex: unknown): ReadonlyMap<string, string> {
  const statements = field(vex, 'statements');
  if (!Array.isArray(statements)) throw new TypeError('the VEX document has no statements');
  const pairs = (statements as readonly unknown[]).flatMap((statement) => {
    const vulnerability = field(statement, 'vulnerability');
    const aliases = field(vulnerability, 'aliases') ?? [];
    const name = String(field(vulnerability, 'name'));
    const ids = [name, ...(Array.isArray(aliases) ? (aliases as readonly unknown[]) : [])];
    return ids.map((id): [string, string] => [String(id), name]);
  });
  return new Map(pairs);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function field(value: unknown, key: string): unknown {
  return value instanceof Object ? Reflect.get(value, key) : undefined;
}
