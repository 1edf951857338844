import { describe, expect, test } from 'vitest';
import { parseArguments } from '../../../src/cli/parse-arguments.ts';

function typed(line: string): unknown {
  return parseArguments(['lab', ...line.split(' ').filter((word) => word !== '')]);
}

function refusal(line: string): string {
  const command = typed(line) as { kind: string; message?: string };
  return command.kind === 'usage-error' ? (command.message ?? '') : `understood as ${command.kind}`;
}

describe('lab', () => {
  test('lists the studies when it is called alone or with --help', () => {
    const help = { kind: 'help', topic: 'lab' };
    expect([typed(''), typed('--help'), typed('contention -h')]).toEqual([help, help, help]);
  });

  test('parses a contention', () => {
    expect(typed('contention full-jitter sip --n 10,20 --trials 5 --base 5ms --seed 7 --json --svg a.svg')).toEqual({
      kind: 'lab',
      study: {
        study: 'contention',
        sizes: [10, 20],
        trials: 5,
        strategies: ['full-jitter', 'sip'],
        options: { baseInterval: 5 },
      },
      seed: 7,
      json: true,
      svg: 'a.svg',
    });
  });

  test('distinguishes the studies of a channel by their options', () => {
    expect(typed('aloha')).toMatchObject({ study: { study: 'throughput' }, seed: 1 });
    expect(typed('aloha --n 400 --k 200 --load 0.3')).toMatchObject({
      study: { study: 'chain', users: 400, spread: 200, load: 0.3 },
    });
    expect(typed('aloha table --n 400 --load 0.34 --table 1,10,100')).toMatchObject({
      study: { study: 'channel', users: 400, load: 0.34, strategies: ['table'], options: { table: [1, 10, 100] } },
    });
  });

  test('parses a segment and a herd', () => {
    expect(typed('ethernet --n 2,3 --frame 64 --load 0.5 --seconds 2')).toMatchObject({
      study: { study: 'ethernet', stations: [2, 3], frame: 64, load: 0.5, seconds: 2 },
    });
    expect(typed('thundering-herd grpc --n 10 --limit 5/s --burst 2 --trials 3')).toMatchObject({
      study: { study: 'thundering-herd', clients: 10, rate: 5, burst: 2, trials: 3, strategies: ['grpc'] },
    });
  });

  test.each([
    ['contenton', "the lab has no 'contenton' (did you mean contention?)"],
    ['zzz', "the lab has no 'zzz' (did you mean contention, aloha, ethernet, thundering-herd, fit?)"],
    ['contention ful-jitter', "no strategy is called 'ful-jitter' (did you mean full-jitter?)"],
    ['contention --n 0', '--n: expected whole numbers from 1 to 2000, such as 10,20,50'],
    ['contention --n many', '--n: expected whole numbers from 1 to 2000, such as 10,20,50'],
    ['contention --trials 0', '--trials: expected a whole number from 1 to 1000000'],
    ['contention --load 1', 'unknown option --load'],
    ['aloha --n 400', 'aloha needs --n USERS and --load LOAD, with --k K or a STRATEGY'],
    ['aloha --n 4 --k 2 --load 5', '--load: expected at most 4, a packet a slot for each of the --n users'],
    ['aloha --n 4 --k 2 --load 1 --slots 5', '--slots only applies to simulations, and --k is computed'],
    ['aloha table', 'a STRATEGY needs a channel: --n and --load, without --k'],
    ['aloha --n 400 --load 0.3 --table 0', '--table: expected whole numbers from 1, such as 1,10,100,200'],
    ['ethernet fast', "ethernet takes no 'fast'"],
    ['ethernet --frame 10', '--frame: expected a whole number from 64 to 9000'],
    ['thundering-herd --limit 5', '--limit: '],
    ['aloha --seed -1', '--seed: expected a whole number from 0'],
    ['ethernet --load -1', '--load: expected a number above 0, at most 1000'],
    ['contention --base -1', '--base: a duration cannot be negative'],
    ['thundering-herd --limit -5/s', '--limit: a rate cannot be negative'],
    ['contention none', "'none' is always included: name other strategies, or none at all"],
    ['thundering-herd none', "'none' is always included: name other strategies, or none at all"],
    ['contention zigzag', "no strategy is called 'zigzag'; there are fixed, random, "],
    ['aloha --table 1,2', '--table needs a STRATEGY, and a channel: --n and --load, without --k'],
    ['aloha --n 4 --k 2 --load 1 --base 3s', '--base needs a STRATEGY, and a channel: --n and --load, without --k'],
    ['aloha --n 4 --k 10001 --load 1', '--k: expected a whole number from 1 to 10000'],
    ['aloha --svg=', '--svg needs a FILE'],
  ])('rejects %s', (line, message) => {
    expect(refusal(line)).toContain(message);
  });
});
