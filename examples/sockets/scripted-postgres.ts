/**
 * The part of a PostgreSQL server that the example needs. It accepts every client, and answers every simple
 * query with one row that has the text of the query.
 */
import type { Socket } from 'rdma-rpc/socket';

function message(kind: string, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const head = Buffer.alloc(5);
  head.write(kind, 'latin1');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

const int16 = (value: number): Buffer => Buffer.from([value >> 8, value & 0xff]);
const int32 = (value: number): Buffer => Buffer.from(new Int32Array([value]).buffer).swap32();
const text = (value: string): Buffer => Buffer.from(`${value}\0`);

const ready = message('Z', Buffer.from('I'));
/** One column of type text (oid 25). */
const columns = message(
  'T',
  int16(1),
  text('query'),
  int32(0),
  int16(0),
  int32(25),
  int16(-1),
  int32(-1),
  int16(0),
);

function answer(query: string): Buffer {
  const value = Buffer.from(query);
  const row = message('D', int16(1), int32(value.length), value);
  return Buffer.concat([columns, row, message('C', text('SELECT 1')), ready]);
}

export function scriptedPostgres(socket: Socket): void {
  let waiting: Buffer = Buffer.alloc(0);
  let started = false;
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => {
    waiting = Buffer.concat([waiting, chunk]);
    for (;;) {
      const head = started ? 1 : 0;
      if (waiting.length < head + 4) return;
      const end = head + waiting.readInt32BE(head);
      if (waiting.length < end) return;
      const body = waiting.subarray(head + 4, end);
      const kind = started ? String.fromCharCode(waiting[0]!) : 'startup';
      waiting = waiting.subarray(end);
      if (kind === 'startup') {
        started = true;
        socket.write(Buffer.concat([message('R', int32(0)), ready]));
      } else if (kind === 'Q') socket.write(answer(body.subarray(0, -1).toString()));
      else if (kind === 'X') socket.end();
    }
  });
}
