import { describe, expect, test } from 'vitest';
import { releaseNotes } from '../../../scripts/release/release-notes.ts';

const CHANGELOG = `# Changelog

## What a version promises

Nothing.

## [Unreleased]

### Added

- Not released.

## [1.1.0] - 2026-12-01

### Fixed

- A fault.

## [1.0.0]

- No date.

## [0.9.0] - 2026-01-01

## [0.8.0] - 2025-12-01

- The first.
`;

describe('the notes of a release', () => {
  test.each([
    ['1.1.0', '### Fixed\n\n- A fault.'],
    ['0.8.0', '- The first.'],
  ])('are the section of %s, without its heading', (version, text) => {
    expect(releaseNotes(CHANGELOG, version)).toEqual({ kind: 'found', text });
  });

  test.each([
    ['1.1', 'CHANGELOG.md has no section "## [1.1] - DATE", only [Unreleased], [1.1.0], [1.0.0], [0.9.0], [0.8.0].'],
    ['1.0.0', 'CHANGELOG.md: "## [1.0.0]" has no date, as in "## [1.0.0] - 2026-01-31".'],
    ['0.9.0', 'CHANGELOG.md: the section "## [0.9.0] - 2026-01-01" is empty.'],
    ['Unreleased', 'CHANGELOG.md: "## [Unreleased]" has no date, as in "## [Unreleased] - 2026-01-31".'],
  ])('are missing for %s, with the reason', (version, message) => {
    expect(releaseNotes(CHANGELOG, version)).toEqual({ kind: 'missing', message });
  });
});
