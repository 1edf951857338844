import type { Millis } from '../../src/core/scalars.ts';
import type { HeldResources } from '../support/proxy/memory-probe.ts';
import type { SoakCounts } from './soak-counts.ts';
import type { FaultRecord } from './fault-injector.ts';

const MB = 1024 * 1024;
const COLUMNS = [
  's',
  'sent/s',
  '2xx',
  '429',
  '4xx',
  '502',
  '503',
  '504',
  '500',
  'cut',
  'left',
  'heap MB',
  'rss MB',
  'handles',
  'files',
];
const WIDTH = 8;

/** Formats a line every few seconds: results since the previous line, and the proxy's resources. */
export class SoakTable {
  readonly #counts: SoakCounts;
  readonly #since: Millis = performance.now();
  #at: Millis = performance.now();
  #before = new Map<string, number>();

  constructor(counts: SoakCounts) {
    this.#counts = counts;
  }

  head(): string {
    return `${COLUMNS.map((name) => name.padStart(WIDTH)).join('')}  faults`;
  }

  line({ bytes, rss, handles, files }: HeldResources, happened: readonly FaultRecord[]): string {
    const now = performance.now();
    const from = Date.now() - (now - this.#at);
    const seconds = (now - this.#at) / 1000;
    const { sent, left, received } = this.#counts.totals();
    const totals = new Map([['sent', sent], ['left', left], ...received]);
    const passed = (fits: (what: string) => boolean): number => {
      let sum = 0;
      for (const [what, times] of totals) if (fits(what)) sum += times - (this.#before.get(what) ?? 0);
      return sum;
    };
    const is = (code: string) => passed((what) => what === code);
    const cells = [
      ((now - this.#since) / 1000).toFixed(0),
      (is('sent') / seconds).toFixed(0),
      passed((what) => /^2\d\d$/.test(what)),
      is('429'),
      passed((what) => /^4\d\d$/.test(what) && what !== '429'),
      ...['502', '503', '504', '500'].map(is),
      passed((what) => what.endsWith('cut')),
      is('left'),
      (bytes / MB).toFixed(1),
      (rss / MB).toFixed(0),
      Object.values(handles).reduce((sum, each) => sum + each, 0),
      files,
    ];
    this.#at = now;
    this.#before = totals;
    const faults = happened.filter(({ to }) => to >= from).map(({ name }) => name);
    return `${cells.map((cell) => String(cell).padStart(WIDTH)).join('')}  ${faults.join(', ')}`;
  }
}
