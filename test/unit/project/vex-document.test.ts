import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { statedAdvisories } from '../../../scripts/release/stated-advisories.ts';

const ROOT = join(import.meta.dirname, '../../..');

interface VexStatement {
  readonly vulnerability: { readonly '@id': string; readonly name: string; readonly aliases?: readonly string[] };
  readonly products: readonly {
    readonly '@id': string;
    readonly subcomponents: readonly { readonly '@id': string }[];
  }[];
  readonly status: string;
  readonly status_notes: string;
  readonly justification: string;
  readonly impact_statement: string;
}

interface VexDocument {
  readonly '@context': string;
  readonly '@id': string;
  readonly author: string;
  readonly timestamp: string;
  readonly version: number;
  readonly statements: readonly VexStatement[];
}

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const vex = JSON.parse(read('docs/security/tidegate.openvex.json')) as VexDocument;
const { packages } = JSON.parse(read('package-lock.json')) as {
  readonly packages: Readonly<Record<string, { readonly version?: string }>>;
};

/** The package of a statement, the version that the statement names, and the first one that is not affected. */
function subjectOf({ products, status_notes }: VexStatement): {
  readonly name: string;
  readonly version: string;
  readonly fixed: string;
} {
  const [, name = '', version = ''] = /^pkg:npm\/(.+)@(.+)$/.exec(products[0]?.subcomponents[0]?.['@id'] ?? '') ?? [];
  const [, fixedName, fixed = ''] = /^Fixed in (\S+) (\d+\.\d+\.\d+)\.$/.exec(status_notes) ?? [];
  expect(fixedName).toBe(decodeURIComponent(name));
  return { name: decodeURIComponent(name), version, fixed };
}

function isBefore(version: string, other: string): boolean {
  return version.localeCompare(other, 'en', { numeric: true }) < 0;
}

/** GitHub's id of these is not in their CVE records, nor known from elsewhere. npm would report them without a statement. */
const WITHOUT_GITHUB_ID = ['CVE-2026-133212', 'CVE-2026-120213'];

describe('the VEX document', () => {
  test('has the fields that OpenVEX 0.2.0 requires', () => {
    expect(vex['@context']).toBe('https://openvex.dev/ns/v0.2.0');
    expect([vex['@id'], vex.author].every((text) => text.length > 10)).toBe(true);
    expect(Number.isNaN(Date.parse(vex.timestamp))).toBe(false);
    expect(vex.version).toBeGreaterThanOrEqual(1);
    for (const { vulnerability, products, status, justification, impact_statement } of vex.statements) {
      expect(vulnerability.name).toMatch(/^CVE-\d{4}-\d{4,}$/);
      expect(vulnerability['@id']).toBe(`https://www.cve.org/CVERecord?id=${vulnerability.name}`);
      expect(vulnerability.aliases?.filter((alias) => !/^GHSA(-[\w]{4}){3}$/.test(alias)) ?? []).toEqual([]);
      expect(products.map((product) => product['@id'])).toEqual(['pkg:npm/tidegate']);
      expect([status, justification]).toEqual(['not_affected', 'vulnerable_code_not_in_execute_path']);
      expect(impact_statement).toMatch(/\.$/);
    }
  });

  test('has the ids that npm reports, except for known ones', () => {
    const stated = statedAdvisories(vex);
    const unknown = vex.statements.filter(({ vulnerability }) => vulnerability.aliases === undefined);
    expect(unknown.map(({ vulnerability }) => vulnerability.name)).toEqual(WITHOUT_GITHUB_ID);
    expect(stated.get('GHSA-j425-jw94-m29r')).toBe('CVE-2026-107318');
    expect(stated.get('CVE-2026-133212')).toBe('CVE-2026-133212');
  });

  test('names the installed versions, and has no statement on one that is not affected any more', () => {
    const stale = vex.statements.map(subjectOf).filter(({ name, version, fixed }) => {
      const installed = packages[`node_modules/${name}`]?.version;
      return installed !== version || !isBefore(version, fixed);
    });
    expect(stale).toEqual([]);
  });

  test('names source files that exist', () => {
    const files = vex.statements.flatMap(({ impact_statement }) => impact_statement.match(/src\/[\w./-]+\.ts/g) ?? []);
    expect(files.length).toBeGreaterThan(5);
    for (const file of files) expect(read(file)).toContain('@fastify/');
  });

  test('is what docs/security.md lists', () => {
    const rows = Array.from(
      read('docs/security.md').matchAll(/^\| (CVE-\S+) \| (@\S+) \| (\S+) \|/gm),
      ([, advisory, name, fixed]) => ({ advisory, name, fixed }),
    );
    const stated = vex.statements.map((statement) => {
      const { name, fixed } = subjectOf(statement);
      return { advisory: statement.vulnerability.name, name, fixed };
    });
    expect(rows).toEqual(stated);
  });
});
