/**
 * Tests connections by network address. The count is that of the open connections, for every order in which
 * they close and open.
 */
import { duplexPair } from 'node:stream';
import { expect, test } from 'vitest';
import { PeerCounts } from '../../runtime/server/peer-counts.ts';
import { turn, until } from '../outcomes.ts';

test('a connection that closes makes room for one, and the others still count', async () => {
  const counts = new PeerCounts(3);
  const open = () => {
    const [duplex] = duplexPair();
    return { duplex, refusal: counts.enter('10.0.0.1', duplex) };
  };
  const first = [open(), open(), open()];
  expect(first.map(({ refusal }) => refusal)).toEqual([undefined, undefined, undefined]);
  expect(open().refusal?.message).toMatch(
    /10\.0\.0\.1 has 3 connections already \(option sessionsPerPeerMax/,
  );
  for (const { duplex } of first) {
    duplex.destroy();
    await until(() => duplex.closed);
    await turn();
    expect(open().refusal).toBeUndefined();
    expect(open().refusal).toBeDefined();
  }
  expect(counts.enter('10.0.0.2', duplexPair()[0])).toBeUndefined();
  expect(counts.size).toBe(2);
});

test('an address without connections is forgotten', async () => {
  const counts = new PeerCounts(1);
  for (let round = 0; round < 3; ++round) {
    const [duplex] = duplexPair();
    expect(counts.enter('10.0.0.1', duplex)).toBeUndefined();
    duplex.destroy();
    await until(() => duplex.closed);
    await turn();
    expect(counts.size).toBe(0);
  }
});
