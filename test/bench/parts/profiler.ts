// Loaded before a program (`node --import profiler.ts?file=F&after=MS&length=MS`): records a CPU profile that starts after
// a delay, so that it excludes startup and code that is not compiled yet.

import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';

const INTERVAL_MICROS = 250;

const { searchParams } = new URL(import.meta.url);
const read = (name: string): number => Number(searchParams.get(name));
const session = new Session();
session.connect();
setTimeout(() => void profile(), read('after')).unref();

async function profile(): Promise<void> {
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: INTERVAL_MICROS });
  await session.post('Profiler.start');
  setTimeout(() => void write(), read('length')).unref();
}

async function write(): Promise<void> {
  const { profile: recorded } = await session.post('Profiler.stop');
  writeFileSync(searchParams.get('file') ?? '', JSON.stringify(recorded));
}
