/**
 * The stream between the ends of a tunnel ends, for example because one of them drains, before a program has
 * taken its last bytes.
 */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { Carrier } from '../../../cli/tunnel/carrier.ts';
import { newCounts } from '../../../cli/tunnel/counts.ts';
import { FrameWriter, Kind } from '../../../cli/tunnel/frames.ts';
import { SlowProgram } from './slow-program.ts';

/** Sends data to a program (and its end when `fin` is set), and then ends the stream. */
async function endWith(program: SlowProgram, fin: boolean): Promise<{ broken: number }> {
  const counts = newCounts();
  const accept = (): Socket => program as unknown as Socket;
  const carrier = new Carrier({ counts, report: () => undefined, accept, onOver: () => undefined });
  carrier.open = true;
  const writer = new FrameWriter();
  writer.add(Kind.open, 1);
  writer.data(1, Buffer.from('the last bytes'));
  if (fin) writer.add(Kind.fin, 1);
  await carrier.read(
    (async function* () {
      yield { parts: writer.take().map((part) => Buffer.from(part)) };
      program.push(null);
      await once(program, 'end');
    })(),
  );
  return counts;
}

test('a connection that both programs have ended goes on until its last bytes are taken', async () => {
  const program = new SlowProgram();
  const counts = await endWith(program, true);
  expect(program.destroyed).toBe(false);
  const closed = once(program, 'close');
  program.takes[0]!();
  await closed;
  expect(program.writableFinished).toBe(true);
  expect(program.errored).toBe(null);
  expect(counts.broken).toBe(0);
});

test('a connection that the other side has not ended is broken', async () => {
  const program = new SlowProgram();
  const counts = await endWith(program, false);
  expect(program.destroyed).toBe(true);
  expect(counts.broken).toBe(1);
});
