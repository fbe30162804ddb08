/**
 * An end of a tunnel has received a large message. The memory of the message is released when programs have
 * taken all data that lies in it, for every way in which each program may end.
 */
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { Conduit } from '../../../cli/tunnel/conduit.ts';
import { newCounts } from '../../../cli/tunnel/counts.ts';
import { HeldMessage } from '../../../cli/tunnel/held-message.ts';
import type { Lease } from '../../../runtime/core/lease.ts';
import { SlowProgram } from './slow-program.ts';

function conduitTo(program: SlowProgram): Conduit {
  const owner = { send: () => undefined, sendData: () => undefined, onClosed: () => undefined };
  return new Conduit(1, program as unknown as Socket, owner, newCounts(), () => undefined);
}

/** A lease that counts how often it was released. */
class CountedLease implements Lease {
  releases = 0;
  readonly bytes = new Uint8Array(8);
  readonly released = false;

  release(): void {
    ++this.releases;
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a message is released when the last of its programs has taken its data', async () => {
  const lease = new CountedLease();
  const held = new HeldMessage(lease);
  const programs = [new SlowProgram(), new SlowProgram()];
  for (const program of programs) conduitTo(program).onData(Buffer.from('data'), held);
  held.done();
  for (const program of programs) {
    expect(lease.releases).toBe(0);
    program.takes[0]!();
    await turn();
  }
  expect(lease.releases).toBe(1);
});

test.each<[string, (program: SlowProgram) => void]>([
  ['fails', (program) => program.takes[0]!(new Error('reset'))],
  ['is destroyed', (program) => void program.destroy()],
])('two writes to a program that %s', async (_name, end) => {
  const lease = new CountedLease();
  const held = new HeldMessage(lease);
  const program = new SlowProgram();
  const conduit = conduitTo(program);
  for (let i = 0; i < 2; i++) conduit.onData(Buffer.from('data'), held);
  held.done();
  end(program);
  // The system may still be reading the memory for a write that is under way.
  program.takes[0]?.(new Error('closed'));
  await turn();
  expect(lease.releases).toBe(1);
  // Data for a program that is gone does not keep the memory.
  const later = new CountedLease();
  const more = new HeldMessage(later);
  conduit.onData(Buffer.from('late'), more);
  more.done();
  expect(later.releases).toBe(1);
});

test('a message without data for programs is released at once', () => {
  const lease = new CountedLease();
  new HeldMessage(lease).done();
  expect(lease.releases).toBe(1);
});
