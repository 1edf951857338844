/** The clock of the upstream, and the age of a response. */
import { expect, test } from 'vitest';
import { readAge, readServerTime } from '../../../src/core/hints/server-time.ts';

const DATE = 'Sat, 21 Nov 2026 11:26:00 GMT';
const SENT = Date.parse(DATE);

test.each<[string, readonly string[], number]>([
  ['none', [], 0],
  ['one', ['Age', '10'], 10],
  ['one among others', ['Vary', '7', 'aGe', '10', 'ETag', '99'], 10],
  ['the largest of several', ['Age', '10', 'age', '30', 'AGE', '20'], 30],
  ['the largest of a list', ['Age', '10, 30, 20'], 30],
  ['one beside what is not readable', ['Age', 'old', 'Age', '10', 'Age', '-20'], 10],
  ['none by another name of its length', ['DNT', '10'], 0],
  ['none by a longer name', ['Ages', '10', 'X-Age', '10'], 0],
  ['none by a name without a value', ['Age'], 0],
])('the age is %s', (_, headers, age) => {
  expect(readAge(headers)).toBe(age);
});

test.each<[string, readonly string[], wallClock: number, time: number]>([
  ['ours without a Date', ['Age', '10'], SENT, SENT],
  ['ours if the Date is not readable', ['Date', 'yesterday'], SENT + 7, SENT + 7],
  ['ours if the Date has no value', ['Vary', DATE, 'Date'], SENT + 5000, SENT + 5000],
  ['that of the Date', ['date', `\t${DATE} `], SENT + 5000, SENT],
  ['that of the first readable Date', ['Date', '?', 'DATE', DATE, 'Date', DATE.replace(':00 ', ':09 ')], 0, SENT],
  ['that of the Date, later by the Age', ['Age', '30', 'Date', DATE], 0, SENT + 30_000],
  ['not that of another field', ['Last-Modified', DATE, 'Dates', DATE], 7, 7],
  ['that of the Date if ours is behind it', ['Date', DATE], SENT - 1, SENT],
  ['ours if it is at most 1.25 s ahead', ['Date', DATE], SENT + 1249, SENT + 1249],
  ['that of the Date if ours is further ahead', ['Date', DATE], SENT + 1250, SENT],
  ['ours if it agrees with the Date and the Age', ['Date', DATE, 'Age', '30'], SENT + 30_400, SENT + 30_400],
])('the time is %s', (_, headers, wallClock, time) => {
  expect(readServerTime(headers, wallClock)).toBe(time);
});
