import { expect, test } from 'vitest';
import { checkSequences } from '../support/deliveries/check-sequences.ts';
import { sqlitePlace } from '../support/deliveries/sqlite-place.ts';

test('changes, restarts and removals of deliveries in SQLite leave what a simple model has', async () => {
  await expect(checkSequences(sqlitePlace, 30)).resolves.toBeUndefined();
});
