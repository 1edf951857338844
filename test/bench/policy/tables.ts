import type { ControlTable } from '../control/table.ts';
import { median } from './goals.ts';
import type { PartFigures } from './parts.ts';
import { OPERATIONS } from './queues.ts';

type Of<P extends PartFigures['part']> = Extract<PartFigures, { readonly part: P }>;

const MIB = 1024 ** 2;
const NAMES = {
  open: 'no limit found',
  paced: 'a limit found, 4/5 of it offered',
  overrun: 'twice the limit offered',
};

export function tablesOf(all: readonly PartFigures[]): ControlTable[] {
  const of = <P extends PartFigures['part']>(part: P): Of<P>[] =>
    all.filter((each): each is Of<P> => each.part === part);
  const tables: ControlTable[] = [];
  for (const figures of of('memory')) tables.push(memoryTable(figures));
  for (const figures of of('pauses')) tables.push(pauseTable(figures));
  tables.push(decisionTable(of('decisions')));
  for (const figures of of('queues')) tables.push(queueTable(figures));
  return tables;
}

function memoryTable({ clients, whole, key, resident }: Of<'memory'>): ControlTable {
  return {
    title: 'Memory',
    head: ['of each client', ''],
    rows: [
      ['beyond its key', `${(whole - key).toFixed(0)} B`],
      ['its key, as a string', `${key.toFixed(0)} B`],
      ['both: all that is held more than before', `${whole.toFixed(0)} B`],
      [`resident memory of ${clients} more than before`, `${(resident / MIB).toFixed(0)} MiB`],
    ],
  };
}

function pauseTable({ full, bare, own, growth }: Of<'pauses'>): ControlTable {
  const ms = (duration: number): string => `${duration.toFixed(1)} ms`;
  const line = (name: string, sorted: readonly number[]): string[] => [
    name,
    String(sorted.length),
    ms(median(sorted)),
    ms(sorted.at(-1) ?? Number.NaN),
  ];
  return {
    title: 'Pauses',
    head: ['', 'times', 'median', 'longest'],
    rows: [
      line('full collections that were asked for', full),
      line('the same, without clients', bare),
      ...Object.entries(own).map(([kind, { count, longest }]) => [
        `collections of their own accord, ${kind}`,
        String(count),
        '',
        count === 0 ? '' : ms(longest),
      ]),
      ['the decision for which the table grew most', '', '', ms(growth)],
    ],
  };
}

function decisionTable(decisions: readonly Of<'decisions'>[]): ControlTable {
  return {
    title: 'Decisions',
    head: ['', 'clients by', 'fastest round', 'slowest', 'naming and ticket, not in it'],
    rows: decisions.map(({ load, law, decision: [least, most], building }) => [
      NAMES[load],
      law,
      ...[least, most, building].map((cost) => `${cost.toFixed(2)} µs`),
    ]),
  };
}

function queueTable({ queues }: Of<'queues'>): ControlTable {
  const byClients = queues[0]?.size.queued === queues[1]?.size.queued;
  return {
    title: byClients ? 'Waiting, by clients' : 'Waiting, by requests',
    head: ['queued', 'clients', ...OPERATIONS.map((name) => `${name}, µs`)],
    rows: queues.map(({ size, costs }) => [
      String(size.queued),
      String(size.clients),
      ...OPERATIONS.map((name) => costs[name].toFixed(2)),
    ]),
  };
}
