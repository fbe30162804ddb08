/**
 * Tests the number of calls that a closing client states, and how far a server believes it.
 */
import { expect, test, vi } from 'vitest';
import { ServerConnection } from '../../runtime/server/server-connection.ts';

test.each([
  ['what it has made and the server has seen', 5, 5],
  ['some that are under way', 9, 9],
  ['as many as may be under way', 12, 12],
  ['more than that', 13, 12],
  ['a number without end', Number.MAX_SAFE_INTEGER, 12],
])('%s: calls up to %i are served up to %i', (_, said, served) => {
  const rejectAfter = vi.fn();
  const session = { calls: 5, rejectAfter } as never;
  const connection = new ServerConnection(
    session,
    { send: () => undefined } as never,
    { inflightMax: 4, streamsMax: 3 } as never,
  );
  connection.leave('the server shuts down');
  expect(connection.leaving(said)).toBe(true);
  expect(rejectAfter.mock.calls).toEqual([['the server shuts down', served]]);
});
