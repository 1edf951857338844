import { Redis } from 'ioredis';
import { findProgram } from '../../setup/find-program.ts';
import { Program } from '../program.ts';
import { freePort } from '../../support/free-port.ts';

/** CPU seconds and calls of Redis. */
export interface Spent {
  readonly cpu: number;
  readonly calls: number;
}

export interface BenchRedis {
  readonly url: string;
  spent(): Promise<Spent>;
  stop(): Promise<void>;
}

/** Starts a Redis without persistence. */
export async function startProgram(folder: string): Promise<BenchRedis> {
  const port = await freePort();
  const command = findProgram('redis-server');
  if (command === undefined) throw new Error('redis-server is not installed: node test/setup/programs.ts replicas');
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
  const program = new Program({ command, args, stopSignal: 'SIGKILL' });
  await program.listening(port);
  const client = new Redis(port, '127.0.0.1');
  client.on('error', () => undefined); // it exits before its client
  return {
    url: `redis://127.0.0.1:${port}`,
    spent: async () => {
      const [cpu, calls] = await Promise.all([client.info('cpu'), client.info('commandstats')]);
      return {
        cpu: read(cpu, /used_cpu_user:([\d.]+)/) + read(cpu, /used_cpu_sys:([\d.]+)/),
        calls: read(calls, /cmdstat_evalsha:calls=(\d+)/),
      };
    },
    stop: async () => {
      client.disconnect();
      await program.stop();
    },
  };
}

function read(info: string, pattern: RegExp): number {
  return Number(pattern.exec(info)?.[1] ?? 0);
}
