export type ReleaseNotes =
  | { readonly kind: 'found'; readonly text: string }
  | { readonly kind: 'missing'; readonly message: string };

/** Returns the text below `## [VERSION] - DATE` in a changelog, up to the next heading of that level. */
export function releaseNotes(changelog: string, version: string): ReleaseNotes {
  const sections = changelog.split(/^(?=## )/m);
  const section = sections.find((text) => text.startsWith(`## [${version}]`));
  if (section === undefined) {
    const known = sections.flatMap((text) => /^## (\[[^\]]+\])/.exec(text)?.[1] ?? []);
    return missing(`CHANGELOG.md has no section "## [${version}] - DATE", only ${known.join(', ') || 'none'}.`);
  }
  const [heading = '', ...lines] = section.split('\n');
  if (!/^## \[[^\]]+\] - \d{4}-\d{2}-\d{2}$/.test(heading)) {
    return missing(`CHANGELOG.md: "${heading}" has no date, as in "## [${version}] - 2026-01-31".`);
  }
  const text = lines.join('\n').trim();
  return text === '' ? missing(`CHANGELOG.md: the section "${heading}" is empty.`) : { kind: 'found', text };
}

function missing(message: string): ReleaseNotes {
  return { kind: 'missing', message };
}
